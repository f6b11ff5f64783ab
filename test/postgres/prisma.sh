#!/bin/sh
# Creates a folder with Prisma and a generated client, for the optional test: prisma.sh <folder>, then
# MILLRACE_PRISMA=<folder> npx vitest run --project house test/postgres-handles.test.ts
set -eu
mkdir -p "$1"
cd "$1"
echo '{ "private": true }' > package.json
npm install --no-audit --no-fund prisma@7.10 @prisma/client@7.10 @prisma/adapter-pg@7.10
cat > schema.prisma <<'SCHEMA'
generator client {
  provider = "prisma-client-js"
  output   = "./generated"
}
datasource db {
  provider = "postgresql"
}
model Thing {
  id Int @id
}
SCHEMA
echo "export default { schema: './schema.prisma', datasource: { url: 'postgresql://unused' } }" > prisma.config.mjs
# Generating a client needs no engine, and this prevents its download.
PRISMA_SCHEMA_ENGINE_BINARY=$(command -v node) npx prisma generate

import { createRequire } from 'node:module'
import { join } from 'node:path'
import type { Opened } from './libraries.js'

/**
 * Prisma is 300 MB, so it is not a dependency, not even for tests. It is tested where MILLRACE_PRISMA names a folder that
 * has it; test/postgres/prisma.sh creates one.
 */
export const prismaFolder = process.env['MILLRACE_PRISMA']

interface Client {
  $transaction<T>(work: (tx: Client) => Promise<T>): Promise<T>
  $queryRawUnsafe(text: string): Promise<object[]>
  $disconnect(): Promise<void>
}

export function openPrisma(folder: string, url: string): Opened {
  const load = createRequire(join(folder, 'package.json'))
  const { PrismaClient } = load('./generated') as { PrismaClient: new (options: object) => Client }
  const { PrismaPg } = load('@prisma/adapter-pg') as { PrismaPg: new (options: object) => object }
  const client = new PrismaClient({ adapter: new PrismaPg({ connectionString: url }) })
  return {
    roots: { client },
    transaction: (work) => client.$transaction(work),
    nested: (tx, work) => (tx as Client).$transaction(work),
    own: async (tx, text) => Object.values((await (tx as Client).$queryRawUnsafe(text))[0] ?? {})[0],
    close: () => client.$disconnect(),
  }
}

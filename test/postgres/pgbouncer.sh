#!/bin/sh
# Unpacks Debian's PgBouncer and what it needs into a folder, installing nothing, and prints the program to name:
#   MILLRACE_PGBOUNCER=$(sh test/postgres/pgbouncer.sh /tmp/pgbouncer) npx vitest run --project house test/postgres-pgbouncer.test.ts
set -eu
folder=${1:?the folder to put it in}
mkdir -p "$folder"
chmod 755 "$folder"
cd "$folder"
if [ ! -x run ]; then
  apt-get download pgbouncer libevent-2.1-7 libc-ares2 >&2
  for package in *.deb; do dpkg -x "$package" .; done
  printf '#!/bin/sh\nLD_LIBRARY_PATH=%s exec %s "$@"\n' "$folder/usr/lib/$(gcc -dumpmachine 2>/dev/null || echo x86_64-linux-gnu)" "$folder/usr/sbin/pgbouncer" > run
  chmod 755 run
fi
echo "$folder/run"

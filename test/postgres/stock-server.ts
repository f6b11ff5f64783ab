import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'

const INSTALLED = '/usr/lib/postgresql'

/**
 * The programs of Debian's PostgreSQL, the newest that can compile statements; undefined where none is installed. The
 * server of `freshDatabase()` comes from npm and has no LLVM, so JIT cannot be tested on it.
 */
export const stockPrograms: string | undefined = newestWithJit()

function newestWithJit(): string | undefined {
  const majors = existsSync(INSTALLED) ? readdirSync(INSTALLED).filter((name) => /^\d+$/.test(name)) : []
  return majors
    .sort((a, b) => Number(b) - Number(a))
    .map((major) => join(INSTALLED, major))
    .filter((folder) => existsSync(join(folder, 'lib', 'llvmjit.so')) && existsSync(join(folder, 'bin', 'initdb')))
    .map((folder) => join(folder, 'bin'))[0]
}

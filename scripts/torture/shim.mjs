import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const SOURCES = {
  power: new URL('./power-shim.c', import.meta.url),
  fault: new URL('./fault-shim.c', import.meta.url),
}

const COMPILER = 'cc'

/**
 * Compiles a shim into `folder` with the machine's compiler.
 * @returns {{ library: string } | { skip: string }}
 */
export function compileShim(name, folder) {
  if (process.platform !== 'linux') return { skip: `LD_PRELOAD is needed, and this is ${process.platform}` }
  const library = join(folder, `${name}-shim.so`)
  const compiled = spawnSync(
    COMPILER,
    ['-shared', '-fPIC', '-O2', '-Wall', '-Wextra', '-Werror', '-o', library, fileURLToPath(SOURCES[name]), '-ldl'],
    { encoding: 'utf8' },
  )
  if (compiled.error !== undefined) return { skip: `there is no C compiler: ${compiled.error.message}` }
  if (compiled.status !== 0) throw new Error(`the ${name} shim does not compile:\n${compiled.stderr}`)
  return { library }
}

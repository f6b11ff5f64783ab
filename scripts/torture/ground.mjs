import { cpSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { BUNDLE, bundle } from '../bundle.mjs'
import { root } from '../run.mjs'

/**
 * The working folder of a run, with a copy of the built package. A run of minutes starts hundreds of
 * processes; a build in between must not replace their files, or change what is being tested.
 */
export async function breakGround(kind) {
  await bundle()
  // The real path, because the shims compare it with what the kernel says a file descriptor is.
  const folder = realpathSync(mkdtempSync(join(tmpdir(), `millrace-torture-${kind}-`)))
  cpSync(BUNDLE, join(folder, 'package', 'dist'), { recursive: true })
  cpSync(join(root, 'package.json'), join(folder, 'package', 'package.json'))
  symlinkSync(join(root, 'node_modules'), join(folder, 'package', 'node_modules'))
  return {
    folder,
    entry: pathToFileURL(join(folder, 'package', 'dist', 'index.js')).href,
    /** A new folder in it. */
    room(name) {
      const path = join(folder, name)
      mkdirSync(path, { recursive: true })
      return path
    },
    clear: () => rmSync(folder, { recursive: true, force: true }),
  }
}

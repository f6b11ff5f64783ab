import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdtempSync, renameSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/**
 * Runs a bundle as on the machine it is deployed to: beside it is only what a bundle cannot contain, the SQLite library of
 * Node 20, and the folder in which it was built has no packages.
 */
const bundle = process.argv[2]
const folder = mkdtempSync(join(tmpdir(), 'first-hour-deployed-'))
const outside = ['@photostructure/sqlite', 'node-gyp-build']
  .map((name) => join('node_modules', name))
  .filter(existsSync)
for (const path of [bundle, ...outside]) cpSync(path, join(folder, path), { recursive: true })
renameSync('node_modules', 'away')
try {
  const { status } = spawnSync(process.execPath, [join(folder, bundle)], { cwd: folder, stdio: 'inherit' })
  process.exitCode = status ?? 1
} finally {
  renameSync('away', 'node_modules')
  rmSync(folder, { recursive: true, force: true })
}

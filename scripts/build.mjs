import { cpSync, existsSync, mkdirSync, readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { pathToFileURL } from 'node:url'
import { buildWeb } from './build-web.mjs'
import { remakeFolder } from './remake-folder.mjs'
import { root, runNode, tell, tool } from './run.mjs'

const DIST = join(root, 'dist')
/** It is in the folder that it describes, so that both are replaced at once. The tarball does not have it. */
const STAMP = '.stamp'

/**
 * Builds dist/ from src/: one ES module and one declaration for each file, the files that are not TypeScript beside
 * them, and the pages of the dashboard. Does nothing when dist/ was built from exactly these files; `force` builds anyway. Several processes may build at
 * once, and others may use dist/ meanwhile: it is replaced when the new one is complete.
 */
export async function build({ force = false } = {}) {
  const inputs = fingerprint()
  if (!force && builtFrom() === inputs) return { name: 'build (dist is up to date)', code: 0, output: '', seconds: 0 }
  let result
  await remakeFolder(DIST, async (folder) => {
    result = await runNode([tool('typescript', 'tsc'), '-p', 'tsconfig.build.json', '--outDir', folder])
    copyAssets(folder)
    if (result.code === 0) await buildWeb(join(folder, 'dashboard', 'web'))
    writeFileSync(join(folder, STAMP), inputs)
    return result.code === 0
  })
  return { name: 'build', ...result }
}

/** What dist/ was built from; undefined when there is none. */
export function builtFrom() {
  const stamp = join(DIST, STAMP)
  return existsSync(stamp) ? readFileSync(stamp, 'utf8') : undefined
}

/** Name, size and time of all inputs of dist/: a removed file changes it as well as an edited one. */
function fingerprint() {
  const files = [
    ...filesOf('src'),
    'tsconfig.json',
    'tsconfig.build.json',
    'package.json',
    'scripts/build.mjs',
    'scripts/build-web.mjs',
  ]
  return files
    .map((file) => {
      const { size, mtimeMs } = statSync(join(root, file))
      return `${file} ${size} ${mtimeMs}`
    })
    .join('\n')
}

function copyAssets(folder) {
  for (const file of filesOf('src').filter((each) => each.endsWith('.sql'))) {
    const target = join(folder, relative('src', file))
    mkdirSync(dirname(target), { recursive: true })
    cpSync(join(root, file), target)
  }
}

function filesOf(folder) {
  return readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(root, join(entry.parentPath, entry.name)))
    .sort()
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const result = await build({ force: process.argv.includes('--force') })
  tell(result)
  process.exitCode = result.code
}

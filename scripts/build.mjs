import { cpSync, existsSync, mkdirSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { pathToFileURL } from 'node:url'
import { root, runNode, tell, tool } from './run.mjs'

/**
 * Builds dist/ from src/: one ES module and one declaration for each file, and the files that are not TypeScript beside
 * them. Does nothing when dist/ was built from exactly these files; `--force` builds anyway.
 */
export async function build({ force = false } = {}) {
  const inputs = fingerprint()
  if (!force && existsSync(join(root, 'dist', 'index.js')) && readStamp() === inputs) {
    return { name: 'build (dist is up to date)', code: 0, output: '', seconds: 0 }
  }
  rmSync(STAMP, { force: true })
  rmSync(join(root, 'dist'), { recursive: true, force: true })
  const result = await runNode([tool('typescript', 'tsc'), '-p', 'tsconfig.build.json'])
  if (result.code === 0) {
    copyAssets()
    mkdirSync(dirname(STAMP), { recursive: true })
    writeFileSync(STAMP, inputs)
  }
  return { name: 'build', ...result }
}

const STAMP = join(root, '.cache', 'build-stamp.txt')

function readStamp() {
  return existsSync(STAMP) ? readFileSync(STAMP, 'utf8') : undefined
}

/** Name, size and time of all inputs of dist/: a removed file changes it as well as an edited one. */
function fingerprint() {
  const files = [...filesOf('src'), 'tsconfig.json', 'tsconfig.build.json', 'package.json', 'scripts/build.mjs']
  return files
    .map((file) => {
      const { size, mtimeMs } = statSync(join(root, file))
      return `${file} ${size} ${mtimeMs}`
    })
    .join('\n')
}

function copyAssets() {
  for (const file of filesOf('src').filter((each) => each.endsWith('.sql'))) {
    const target = join(root, 'dist', relative('src', file))
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

import { cpSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { build, builtFrom } from './build.mjs'
import { remakeFolder } from './remake-folder.mjs'
import { root } from './run.mjs'

/**
 * The built package in a few files, for tests that start processes: a process loads them in a third of the time that it needs for
 * the 350 modules of dist/, and a run of all tests starts hundreds of processes.
 */
const FOLDER = join(root, '.cache', 'bundle')
/** Has the same paths as dist/, for the modules listed here. */
export const BUNDLE = join(FOLDER, 'dist')

const ENTRIES = [
  // What the package exports, and its command.
  'index',
  'postgres',
  'testing/index',
  'cli/main',
  // What the programs of tests import beside it.
  'mill',
  'world/world',
  'world/uncaught',
  'store/sqlite/connection/library',
]

/** What a program imports to get the module at this path of dist/. */
export function urlInBundle(path) {
  return pathToFileURL(join(BUNDLE, path)).href
}

/** Builds the package, then the bundle, where they are not up to date. Throws where the package does not build. */
export async function bundle() {
  const built = await build()
  if (built.code !== 0) throw new Error(`the package does not build:\n${built.output}`)
  const stamp = `${builtFrom()}\n${ENTRIES.join('\n')}`
  if (readStamp() === stamp) return
  await remakeFolder(FOLDER, async (folder) => {
    await write(join(folder, 'dist'))
    cpSync(join(root, 'package.json'), join(folder, 'package.json'))
    writeFileSync(join(folder, STAMP), stamp)
    return true
  })
}

const STAMP = 'stamp.txt'

function readStamp() {
  const file = join(FOLDER, STAMP)
  return existsSync(file) ? readFileSync(file, 'utf8') : undefined
}

async function write(folder) {
  // Not imported above: most callers find a bundle that is up to date.
  const { rolldown } = await import('rolldown')
  const input = Object.fromEntries(ENTRIES.map((name) => [name, join(root, 'dist', `${name}.js`)]))
  const made = await rolldown({ input, platform: 'node', external: [/^node:/, 'pg'] })
  await made.write({ dir: folder, format: 'esm', chunkFileNames: 'chunks/[name]-[hash].js' })
  await made.close()
}

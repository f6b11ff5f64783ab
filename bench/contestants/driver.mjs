import { pathToFileURL } from 'node:url'
import { join } from 'node:path'

/**
 * The library Millrace itself chooses on this Node, for all contestants: a difference between them is then not a difference of the
 * driver.
 * @param {string} dist the built package
 */
export async function chooseDriver(dist) {
  const { chooseLibrary } = await import(pathToFileURL(join(dist, 'store', 'sqlite', 'connection', 'library.js')).href)
  const { open: Database, module } = chooseLibrary()
  return { Database, name: module === 'node:sqlite' ? module : '@photostructure/sqlite' }
}

/** What Millrace sets on its own connection. The caller adds `synchronous`. */
export const SAME_PRAGMAS = `
pragma journal_mode = wal;
pragma temp_store = memory;
pragma cache_size = -16000;
pragma journal_size_limit = 67108864;
pragma busy_timeout = 5000`

/** FULL survives a power cut, NORMAL a crash of the process: the same two words as Millrace's option. */
export function synchronousOf(durability) {
  return `pragma synchronous = ${durability === 'power' ? 'full' : 'normal'}`
}

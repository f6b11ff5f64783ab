import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { root, run } from './run.mjs'

/**
 * Packs what would be published, as npm does it, and returns the tarball's path with the files in it.
 * Scripts run: the build before the pack is part of the test; nothing is built twice.
 * @param {string} [folder] where the tarball is written; it is emptied first
 * @param {string} [from] the tree that is packed
 * @returns {Promise<{ tarball: string, size: number, files: string[] }>}
 */
export async function pack(folder = join(root, '.cache', 'pack'), from = root) {
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  const args = ['pack', '--json', '--loglevel=error', '--pack-destination', folder]
  const { code, output } = await run('npm', args, { cwd: from, timeoutMs: 120_000 })
  if (code !== 0) throw new Error(`npm pack failed:\n${output}`)
  const packed = JSON.parse(output.slice(output.search(/^[[{]/m)))
  const [entry] = Array.isArray(packed) ? packed : Object.values(packed)
  return { tarball: join(folder, entry.filename), size: entry.size, files: entry.files.map(({ path }) => path) }
}

import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'vitest'
import { millrace } from '../../src/index.js'
import { postgres } from '../../src/postgres.js'
import { freshSchema } from '../support/fresh-store.js'
import type { Bench, Bound } from './bound.js'
import { noop, refusedAbove } from './bound.js'

/** A folder that is removed after the case. */
function folderOf(bench: Bench): string {
  bench.notes[0] ??= mkdtempSync(join(tmpdir(), 'millrace-bounds-'))
  const folder = bench.notes[0] as string
  if (bench.made === 0) bench.closeToo(async () => rmSync(folder, { recursive: true, force: true }))
  bench.made = 1
  return folder
}

/** Opens a store there, writes a job and closes it. */
async function worksAt(store: Parameters<typeof millrace>[0] & object): Promise<void> {
  const mill = await millrace({ logger: false, jobs: [noop], ...store })
  try {
    const handle = await mill.enqueue(noop, {})
    expect((await handle.get())?.state).toBe('ready')
  } finally {
    await mill.close()
  }
}

/** A path of so many bytes: folders of a hundred bytes, and a short file name. */
function pathOf(folder: string, bytes: number): string {
  let path = folder
  while (bytes - path.length > 210) path = join(path, 'd'.repeat(99))
  path = join(path, 'd'.repeat(bytes - path.length - 1 - '/jobs.db'.length))
  mkdirSync(path, { recursive: true })
  return join(path, 'jobs.db')
}

const TOO_LONG = { code: 'E_CANNOT_OPEN', text: /too long \(ENAMETOOLONG\)/ }

/** Limits of where a store can be. */
export const placeLimits: readonly Bound[] = [
  {
    of: 'src/store/sqlite/file/store-path.ts#PATH_MAX_BYTES',
    at: 500,
    on: 'sqlite',
    holds: (size, bench) => {
      const store = pathOf(folderOf(bench), size)
      expect(Buffer.byteLength(store)).toBe(size)
      return refusedAbove(size, 500, () => worksAt({ store }), TOO_LONG)
    },
  },
  {
    of: 'src/store/sqlite/file/store-path.ts#NAME_MAX_BYTES',
    at: 240,
    on: 'sqlite',
    holds: (size, bench) =>
      refusedAbove(size, 240, () => worksAt({ store: join(folderOf(bench), 'n'.repeat(size)) }), TOO_LONG),
  },
  {
    of: 'src/store/sqlite/file/store-path.ts#LINKS_MAX',
    at: 40,
    on: 'sqlite',
    holds: (size, bench) => {
      const folder = join(folderOf(bench), String(size))
      mkdirSync(folder)
      // Each link leads to the next, and the last one to the file. The path itself is not a link and counts as a step.
      for (let n = 1; n < size; n += 1) symlinkSync(join(folder, `${n + 1}`), join(folder, `${n}`))
      const refusal = { code: 'E_CANNOT_OPEN', text: /symbolic links lead in a circle \(ELOOP\)/ }
      return refusedAbove(size, 40, () => worksAt({ store: join(folder, '1') }), refusal)
    },
  },
  {
    of: 'src/store/postgres/postgres.ts#SCHEMA_MAX_BYTES',
    at: 63,
    on: 'postgres',
    isLong: true,
    holds: async (size) => {
      const { url } = freshSchema() as { url: string }
      const schema = 's'.repeat(size)
      const refusal = { code: 'E_INVALID_OPTIONS', text: /must have at most 63 bytes, got 64/ }
      await refusedAbove(size, 63, () => worksAt({ store: postgres(url, { schema }) }), refusal)
    },
  },
]

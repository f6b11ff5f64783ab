import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach } from 'vitest'
import { millrace } from '../../src/index.js'
import type { Mill, MillOptions } from '../../src/index.js'
import type { TestKit, TestOptions } from '../../src/testing/index.js'
import { freshStore } from './fresh-store.js'
import { testing } from './testing.js'

interface OpenedMills {
  /** Where the files of its stores are. */
  readonly folder: string
  readonly open: (options?: MillOptions, store?: string) => Promise<Mill>
  readonly kit: (options?: TestOptions) => Promise<TestKit>
}

/** Opens mills and test kits for the tests of one file, each on a store of its own, and closes them after each test. */
export function openedMills(name: string, defaults: MillOptions = {}): OpenedMills {
  const folder = mkdtempSync(join(tmpdir(), `millrace-${name}-`))
  afterAll(() => rmSync(folder, { recursive: true, force: true }))
  const mills: Mill[] = []
  const kits: TestKit[] = []
  afterEach(async () => {
    for (const mill of mills.splice(0)) await mill.close({ deadline: 0 })
    for (const each of kits.splice(0)) await each.close()
  })
  return {
    folder,
    open: async (options, store = freshStore(folder)) => {
      const mill = await millrace({ store, logger: false, ...defaults, ...options })
      mills.push(mill)
      return mill
    },
    kit: async (options) => {
      const made = await testing(options)
      kits.push(made)
      return made
    },
  }
}

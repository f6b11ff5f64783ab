import { expect, test } from 'vitest'
import { KEEP_DEFAULTS, mergeKeep } from './keep.js'
import type { KeepOptions } from './keep.js'

const DAY = 86_400_000
const defaults = { done: 7 * DAY, cancelled: 7 * DAY, failed: 30 * DAY }

test.each<[readonly (KeepOptions | undefined)[], object]>([
  [[], defaults],
  [[undefined], defaults],
  [['1d'], { done: DAY, cancelled: DAY, failed: DAY }],
  [[5_000], { done: 5_000, cancelled: 5_000, failed: 5_000 }],
  [['none'], { done: 0, cancelled: 0, failed: 0 }],
  [[Infinity], { done: Infinity, cancelled: Infinity, failed: Infinity }],
  [[{ done: 0 }], { ...defaults, done: 0 }],
  [[{ failed: '2d' }], { ...defaults, failed: 2 * DAY }],
  [[{ cancelled: Infinity }], { ...defaults, cancelled: Infinity }],
  [[{ done: '1d' }, { done: '2d', failed: '3d' }, 'none'], { done: DAY, failed: 3 * DAY, cancelled: 0 }],
  [[{ done: 'soon' as never }], defaults],
])('finished jobs are kept as the most specific level says, state by state: %j', (levels, kept) => {
  expect(mergeKeep(levels)).toEqual(kept)
  expect(KEEP_DEFAULTS).toEqual(defaults)
})

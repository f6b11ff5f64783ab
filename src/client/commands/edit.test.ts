import { expect, test } from 'vitest'
import { defaultCodec } from '../../codec/codec.js'
import { readOptions, writeOptions } from '../../job/definition/stored-options.js'
import type { StoredOptions } from '../../job/definition/stored-options.js'
import { editedOptions } from './edit.js'
import type { JobEdit } from './edit.js'

const own = { codec: defaultCodec, upcast: [() => 1] }
const before: StoredOptions = {
  title: 'Old',
  labels: ['old'],
  retry: { limit: 1, jitter: 0 },
  timeout: 5,
  meta: { text: '1' },
}
const edited = (change: JobEdit, payload: unknown = { to: 'Ada', long: 'x'.repeat(600) }): StoredOptions =>
  readOptions(editedOptions(writeOptions(before), change, own, payload))

test.each<[JobEdit, StoredOptions]>([
  [{}, before],
  [{ title: 'For {to}' }, { ...before, title: 'For Ada' }],
  [{ title: '{long}' }, { ...before, title: 'x'.repeat(500) }],
  [{ labels: [] }, { ...before, labels: [] }],
  [{ labels: ['new'] }, { ...before, labels: ['new'] }],
  [{ retry: { limit: 3 } }, { ...before, retry: { limit: 3, jitter: 0 } }],
  [{ timeout: '1s' }, { ...before, timeout: 1_000 }],
  [{ timeout: Infinity }, { ...before, timeout: null }],
  [{ meta: [7] }, { ...before, meta: { text: '[7]' } }],
  [{ priority: 5, queue: 'q' }, before],
])('an edit changes the stored options that it names, and no other: %j', (change, after) => {
  expect(edited(change)).toEqual(after)
})

test('an edit of a job without stored options adds them', () => {
  expect(editedOptions(null, {}, own, {})).toBeNull()
  expect(readOptions(editedOptions(null, { title: 'New' }, own, {}))).toEqual({ title: 'New' })
})

test('a meta that cannot be written is refused with its path', () => {
  expect(() => edited({ meta: { db: () => 1 } })).toThrow(/meta\.db is a function/)
})

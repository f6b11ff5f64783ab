import fc from 'fast-check'
import { expect, test } from 'vitest'
import { applyPatch, diffView } from './frames.js'
import type { Snapshot } from './frames.js'

const asJson = (of: unknown): unknown => JSON.parse(JSON.stringify(of))

/** JSON has no -0. */
const value = fc.jsonValue({ maxDepth: 3 }).map(asJson)
const name = fc.oneof(fc.string({ maxLength: 5 }), fc.constantFrom('a', 'b', '__proto__', 'constructor', '10', '2'))
const fields = fc.record({ count: value, text: value, list: value })
const rows = fc.uniqueArray(fc.tuple(name, fc.record({ state: value, at: value })), {
  selector: ([id]) => id,
  maxLength: 6,
})

const snapshot: fc.Arbitrary<Snapshot> = fc
  .record({
    fields,
    rows,
    now: fc.nat(),
    cursor: fc.option(fc.string()),
    absent: fc.constantFrom(undefined, { a: 'not yet' }),
  })
  .map(({ fields: named, rows: entries, now, cursor, absent }) => ({
    topic: 'queues',
    now,
    fields: named,
    rows: Object.assign(Object.create(null) as object, Object.fromEntries(entries)),
    order: entries.map(([id]) => id),
    cursor,
    ...(absent === undefined ? {} : { absent }),
  }))

test('the patch from one state to another leads to the other, also after it was sent as JSON', () => {
  fc.assert(
    fc.property(snapshot, snapshot, (before, after) => {
      const patch = diffView(before, after)
      const reached = patch === undefined ? { ...before, now: after.now } : applyPatch(before, asJson(patch) as never)
      expect(asJson({ ...reached, absent: reached.absent ?? {} })).toEqual(
        asJson({ ...after, absent: after.absent ?? {} }),
      )
    }),
  )
})

test('states that differ in their time only have no patch', () => {
  fc.assert(
    fc.property(snapshot, (one) => {
      expect(diffView(one, { ...(asJson(one) as Snapshot), now: one.now + 1 })).toBeUndefined()
    }),
  )
})

test('a patch holds what changed, and rows that did not keep their identity', () => {
  const before: Snapshot<{ a: number; b: number }, { n: number }> = {
    topic: 't',
    now: 1,
    fields: { a: 1, b: 2 },
    rows: { x: { n: 1 }, y: { n: 2 }, z: { n: 3 } },
    order: ['x', 'y', 'z'],
    cursor: null,
  }
  const after = { ...before, now: 2, fields: { a: 1, b: 3 }, rows: { x: { n: 1 }, y: { n: 5 } }, order: ['x', 'y'] }
  const patch = diffView(before, after)
  expect(patch).toEqual({ topic: 't', now: 2, fields: { b: 3 }, rows: { y: { n: 5 }, z: null }, order: ['x', 'y'] })
  expect(applyPatch(before, patch as NonNullable<typeof patch>).rows['x']).toBe(before.rows['x'])
})

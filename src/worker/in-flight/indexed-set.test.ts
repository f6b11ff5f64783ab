import fc from 'fast-check'
import { expect, test } from 'vitest'
import { IndexedSet } from './indexed-set.js'

test('contains each added and not deleted item once, in any order of calls', () => {
  const calls = fc.array(fc.record({ at: fc.nat(9), adds: fc.boolean() }))
  fc.assert(
    fc.property(calls, (moves) => {
      const items = Array.from({ length: 10 }, () => ({ index: -1 }))
      const indexed = new IndexedSet<{ index: number }>()
      const set = new Set<{ index: number }>()
      for (const { at, adds } of moves) {
        const item = items[at] as { index: number }
        if (!adds) expect(indexed.delete(item)).toBe(set.delete(item))
        else if (!set.has(item)) {
          indexed.add(item)
          set.add(item)
        }
        expect(indexed.size).toBe(set.size)
        expect(new Set(indexed)).toEqual(set)
      }
    }),
  )
})

test('may change while a loop iterates over it', () => {
  const indexed = new IndexedSet<{ index: number }>()
  for (let i = 0; i < 5; i += 1) indexed.add({ index: -1 })
  let visited = 0
  for (const item of indexed) {
    visited += 1
    indexed.delete(item)
    indexed.add({ index: -1 })
  }
  expect([visited, indexed.size]).toEqual([5, 5])
})

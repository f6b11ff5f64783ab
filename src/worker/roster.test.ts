import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Roster } from './roster.js'

test('whoever came and did not go is on it, once, whatever the order', () => {
  const comings = fc.array(fc.record({ who: fc.nat(9), comes: fc.boolean() }))
  fc.assert(
    fc.property(comings, (moves) => {
      const people = Array.from({ length: 10 }, () => ({ seat: -1 }))
      const roster = new Roster<{ seat: number }>()
      const set = new Set<{ seat: number }>()
      for (const { who, comes } of moves) {
        const person = people[who] as { seat: number }
        if (!comes) expect(roster.delete(person)).toBe(set.delete(person))
        else if (!set.has(person)) {
          roster.add(person)
          set.add(person)
        }
        expect(roster.size).toBe(set.size)
        expect(new Set(roster)).toEqual(set)
      }
    }),
  )
})

test('may change while it is walked', () => {
  const roster = new Roster<{ seat: number }>()
  for (let i = 0; i < 5; i += 1) roster.add({ seat: -1 })
  let met = 0
  for (const item of roster) {
    met += 1
    roster.delete(item)
    roster.add({ seat: -1 })
  }
  expect([met, roster.size]).toEqual([5, 5])
})

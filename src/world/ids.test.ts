import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { makeIds, systemIds } from './ids.js'

const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/
const NOW = Date.UTC(2026, 10, 15)
const timeOf = (id: string): number => Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16)

describe('a job’s id', () => {
  test('is a UUID of version 7 whose first 48 bits are the time', () => {
    const ids = systemIds()
    for (let i = 0; i < 1_000; i += 1) {
      const id = ids.jobId(NOW + i)
      expect(id).toMatch(UUID_V7)
      expect(timeOf(id)).toBe(NOW + i)
    }
  })

  test('is valid, whatever the random words are', () => {
    const word = fc.integer({ min: 0, max: 0xffffffff })
    fc.assert(
      fc.property(fc.infiniteStream(word), fc.nat(2 ** 31), (words, now) => {
        const ids = makeIds(() => words.next().value as number)
        const id = ids.jobId(now + 1)
        expect(id).toMatch(UUID_V7)
        expect(timeOf(id)).toBe(now + 1)
      }),
    )
  })

  test('is greater than the one before, also within one millisecond', () => {
    const ids = systemIds()
    let last = ''
    for (let i = 0; i < 100_000; i += 1) {
      const id = ids.jobId(NOW)
      if (id <= last) expect(id > last, `${id} after ${last}`).toBe(true)
      last = id
    }
  })

  test('is greater than the one before when the clock is set back, does not move or jumps', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 2 ** 47 }), { minLength: 2, maxLength: 50 }), (times) => {
        const ids = systemIds()
        const made = times.map((time) => ids.jobId(time))
        expect(made).toEqual([...made].sort())
        expect(new Set(made).size).toBe(made.length)
        for (const id of made) expect(id).toMatch(UUID_V7)
      }),
    )
  })

  test('is unique in a million: each is greater than the one before', () => {
    const ids = systemIds()
    let last = ''
    for (let i = 0; i < 1_000_000; i += 1) {
      const id = ids.jobId(NOW + (i >> 8))
      if (id <= last) throw new Error(`${id} came after ${last}`)
      last = id
    }
    expect(last).toMatch(UUID_V7)
  })

  test('differs between two processes of the same moment', () => {
    const [a, b] = [systemIds(), systemIds()]
    const made = new Set(Array.from({ length: 10_000 }, (_, i) => (i % 2 ? a : b).jobId(NOW)))
    expect(made.size).toBe(10_000)
  })
})

describe('a fence', () => {
  test('is a whole number from 0 to below 2^52, at the bounds of the words too', () => {
    expect(makeIds(() => 0).fence()).toBe(0)
    expect(makeIds(() => 0xffffffff).fence()).toBe(2 ** 52 - 1)
    expect(makeIds(() => -1).fence()).toBe(2 ** 52 - 1)
  })

  test('uses all its bits and does not repeat', () => {
    const ids = systemIds()
    const made = Array.from({ length: 10_000 }, () => ids.fence())
    expect(made.every((fence) => Number.isSafeInteger(fence) && fence >= 0 && fence < 2 ** 52)).toBe(true)
    expect(new Set(made).size).toBe(10_000)
    for (const bit of [0, 31, 32, 51]) {
      const set = made.filter((fence) => Math.floor(fence / 2 ** bit) % 2 === 1).length
      expect(set, `bit ${bit}`).toBeGreaterThan(4_000)
      expect(set, `bit ${bit}`).toBeLessThan(6_000)
    }
  })
})

test('a worker’s identity is 16 hexadecimal characters, new at each start', () => {
  const ids = systemIds()
  const made = Array.from({ length: 1_000 }, () => ids.workerId())
  for (const id of made) expect(id).toMatch(/^[0-9a-f]{16}$/)
  expect(new Set(made).size).toBe(1_000)
})

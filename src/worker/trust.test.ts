import { expect, test } from 'vitest'
import { HELD_UNASKED_MS } from '../store/queues.js'
import { Trust } from './trust.js'

test('nothing is trusted before it was confirmed', () => {
  expect(new Trust().isFresh(0)).toBe(false)
})

test('a confirmation is trusted for a few milliseconds', () => {
  const trust = new Trust()
  trust.confirm(trust.mark, 100)
  expect(trust.isFresh(100 + HELD_UNASKED_MS)).toBe(true)
  expect(trust.isFresh(100.1 + HELD_UNASKED_MS)).toBe(false)
})

test('a doubt ends it, and an answer to a question from before the doubt does not bring it back', () => {
  const trust = new Trust()
  const mark = trust.mark
  trust.confirm(mark, 100)
  trust.doubt()
  expect(trust.isFresh(100)).toBe(false)
  trust.confirm(mark, 101)
  expect(trust.isFresh(101)).toBe(false)
  trust.confirm(trust.mark, 102)
  expect(trust.isFresh(102)).toBe(true)
})

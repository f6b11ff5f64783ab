import { describe, expect, test } from 'vitest'
import { FINAL_STATES, isFinal, isTimed, LEGAL_MOVES, mayMove, STATES, WAITING_STATES } from './states.js'
import type { State } from './states.js'

describe('the table of legal moves', () => {
  test('has one row for every state and no other', () => {
    expect(Object.keys(LEGAL_MOVES).sort()).toEqual([...STATES].sort())
  })

  test.each<[State, string]>([
    ['scheduled', 'scheduled ready blocked paused cancelled'],
    ['ready', 'ready scheduled blocked paused parked cancelled running'],
    ['running', 'ready scheduled retrying blocked paused parked cancelled done failed'],
    ['retrying', 'retrying ready scheduled blocked paused cancelled'],
    ['blocked', 'blocked ready scheduled retrying paused cancelled'],
    ['paused', 'paused ready scheduled retrying blocked cancelled'],
    ['parked', 'ready scheduled blocked paused cancelled'],
    ['failed', 'ready paused'],
    ['cancelled', 'ready paused'],
    ['done', 'paused'],
  ])('lets a %s job become %s', (from, to) => {
    const expected = new Set(to.split(' '))
    expect(STATES.filter((each) => mayMove(from, each))).toEqual(STATES.filter((each) => expected.has(each)))
  })

  test('leads only to existing states', () => {
    for (const from of STATES) for (const to of LEGAL_MOVES[from]) expect(STATES).toContain(to)
  })

  test('names no target twice', () => {
    for (const from of STATES) expect(new Set(LEGAL_MOVES[from]).size).toBe(LEGAL_MOVES[from].length)
  })

  test('lets a job begin only from ready', () => {
    expect(STATES.filter((from) => mayMove(from, 'running'))).toEqual(['ready'])
  })

  test('lets a job be done or failed only by running', () => {
    expect(STATES.filter((from) => mayMove(from, 'done'))).toEqual(['running'])
    expect(STATES.filter((from) => mayMove(from, 'failed'))).toEqual(['running'])
  })

  test('leads every waiting state to ready eventually', () => {
    for (const state of WAITING_STATES) expect(mayMove(state, 'ready'), state).toBe(true)
  })

  test('reaches every state from the two that an enqueue makes', () => {
    const reached = new Set<State>(['ready', 'scheduled'])
    for (let size = 0; size !== reached.size;) {
      size = reached.size
      for (const from of reached) for (const to of LEGAL_MOVES[from]) reached.add(to)
    }
    expect([...reached].sort()).toEqual([...STATES].sort())
  })
})

describe('the kinds of states', () => {
  test('every state is waiting, running or final, and only one of these', () => {
    expect(STATES).toHaveLength(10)
    expect(new Set(STATES).size).toBe(10)
    for (const state of STATES) {
      const kinds = [
        (WAITING_STATES as readonly State[]).includes(state),
        state === 'running',
        (FINAL_STATES as readonly State[]).includes(state),
      ]
      expect(kinds.filter(Boolean), state).toHaveLength(1)
    }
  })

  test('isFinal agrees with the list', () => {
    expect(STATES.filter(isFinal)).toEqual([...FINAL_STATES])
  })

  test('only scheduled and retrying wait for a time', () => {
    expect(STATES.filter(isTimed)).toEqual(['scheduled', 'retrying'])
  })
})

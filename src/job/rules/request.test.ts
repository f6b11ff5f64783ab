import { describe, expect, test } from 'vitest'
import { isFinal, LEGAL_MOVES } from './states.js'
import type { State } from './states.js'
import type { RequestVerb, RequestedChange, RequestKind } from './request.js'
import { decideRequest, applyRequest } from './request.js'

const STANDING = [null, 'pause', 'cancel'] as const
/** What stands after each ask, by what stood before (none, pause, cancel); '-' where asking means nothing. */
const TABLE: { readonly [A in RequestVerb]: readonly (RequestKind | null | '-')[] } = {
  cancel: ['cancel', 'cancel', 'cancel'],
  pause: ['pause', 'pause', '-'],
  resume: ['-', null, '-'],
}

describe.each(Object.keys(TABLE) as RequestVerb[])('to ask a running job to %s', (ask) => {
  test.each([0, 1, 2])('when %i of none, pause, cancel stands', (at) => {
    const expected = TABLE[ask][at]
    expect(decideRequest(STANDING[at] ?? null, ask)).toEqual(expected === '-' ? null : { wish: expected })
  })

  test('twice is the same as once', () => {
    for (const standing of STANDING) {
      const once = decideRequest(standing, ask)
      if (once !== null && ask !== 'resume') expect(decideRequest(once.wish, ask)).toEqual(once)
    }
  })
})

const cancel: RequestedChange = { kind: 'cancel', reason: 'enough', keepMs: 7 }
const pause: RequestedChange = { kind: 'pause', reason: 'later', keepMs: Infinity }
const settled = (to: State) => ({ to, delayMs: 5, streak: 2, reason: 'own', keepMs: 1, attempt: 3, error: 'e' })

/** What each wish makes of each end of a claim. */
const TURNS: { readonly [to in State]?: readonly [cancel: State, pause: State] } = {
  done: ['done', 'done'],
  cancelled: ['cancelled', 'cancelled'],
  failed: ['cancelled', 'failed'],
  retrying: ['cancelled', 'paused'],
  scheduled: ['cancelled', 'paused'],
  ready: ['cancelled', 'paused'],
  blocked: ['cancelled', 'paused'],
  parked: ['cancelled', 'parked'],
}

describe('a wish', () => {
  test.each(Object.entries(TURNS) as [State, readonly [State, State]][])('for a job that becomes %s', (to, turns) => {
    expect([applyRequest(settled(to), cancel).to, applyRequest(settled(to), pause).to]).toEqual(turns)
  })

  test('is honoured for every way out of running but the pause itself', () => {
    expect(Object.keys(TURNS).sort()).toEqual(LEGAL_MOVES.running.filter((to) => to !== 'paused').sort())
  })

  test('leads only where a running job may go', () => {
    for (const to of Object.keys(TURNS) as State[])
      for (const wish of [cancel, pause]) expect(LEGAL_MOVES.running).toContain(applyRequest(settled(to), wish).to)
  })

  test('that changes nothing gives the very same settlement', () => {
    for (const to of ['done', 'cancelled'] as const) {
      const job = settled(to)
      expect(applyRequest(job, cancel)).toBe(job)
      expect(applyRequest(job, pause)).toBe(job)
    }
  })

  test('to cancel keeps what the attempt told, and says why and for how long', () => {
    expect(applyRequest(settled('retrying'), cancel)).toEqual({
      to: 'cancelled',
      delayMs: null,
      streak: 2,
      reason: 'enough',
      keepMs: 7,
      attempt: 3,
      error: 'e',
    })
  })

  test('to pause keeps the time it waits for, and its streak', () => {
    const turned = applyRequest(settled('retrying'), pause)
    expect(turned).toEqual({ ...settled('paused'), reason: 'later' })
    expect(isFinal(turned.to)).toBe(false)
  })
})

import { describe, expect, test } from 'vitest'
import { isFinal, LEGAL_MOVES } from './states.js'
import type { State } from './states.js'
import type { RequestVerb, RequestedChange, RequestKind } from './request.js'
import { decideRequest, applyRequest } from './request.js'

const PENDING = [null, 'pause', 'cancel'] as const
/** The pending request after each verb, by the one before (none, pause, cancel); '-' where the verb does not apply. */
const TABLE: { readonly [A in RequestVerb]: readonly (RequestKind | null | '-')[] } = {
  cancel: ['cancel', 'cancel', 'cancel'],
  pause: ['pause', 'pause', '-'],
  resume: ['-', null, '-'],
}

describe.each(Object.keys(TABLE) as RequestVerb[])('the request to %s a running job', (verb) => {
  test.each([0, 1, 2])('when number %i of none, pause, cancel is pending', (at) => {
    const expected = TABLE[verb][at]
    expect(decideRequest(PENDING[at] ?? null, verb)).toEqual(expected === '-' ? null : { pending: expected })
  })

  test('made twice has the same effect as made once', () => {
    for (const pending of PENDING) {
      const once = decideRequest(pending, verb)
      if (once !== null && verb !== 'resume') expect(decideRequest(once.pending, verb)).toEqual(once)
    }
  })
})

const cancel: RequestedChange = { kind: 'cancel', reason: 'enough', keepMs: 7 }
const pause: RequestedChange = { kind: 'pause', reason: 'later', keepMs: Infinity }
const settled = (to: State) => ({ to, delayMs: 5, streak: 2, reason: 'own', keepMs: 1, attempt: 3, error: 'e' })

/** The state that each request leads to, by the state of the settlement. */
const APPLIED: { readonly [to in State]?: readonly [cancel: State, pause: State] } = {
  done: ['done', 'done'],
  cancelled: ['cancelled', 'cancelled'],
  failed: ['cancelled', 'failed'],
  retrying: ['cancelled', 'paused'],
  scheduled: ['cancelled', 'paused'],
  ready: ['cancelled', 'paused'],
  blocked: ['cancelled', 'paused'],
  parked: ['cancelled', 'parked'],
}

describe('a request', () => {
  test.each(Object.entries(APPLIED) as [State, readonly [State, State]][])(
    'for a job that becomes %s',
    (to, states) => {
      expect([applyRequest(settled(to), cancel).to, applyRequest(settled(to), pause).to]).toEqual(states)
    },
  )

  test('has a result for every state that follows running, except paused itself', () => {
    expect(Object.keys(APPLIED).sort()).toEqual(LEGAL_MOVES.running.filter((to) => to !== 'paused').sort())
  })

  test('leads only to states that may follow running', () => {
    for (const to of Object.keys(APPLIED) as State[])
      for (const request of [cancel, pause])
        expect(LEGAL_MOVES.running).toContain(applyRequest(settled(to), request).to)
  })

  test('that changes nothing returns the same settlement object', () => {
    for (const to of ['done', 'cancelled'] as const) {
      const job = settled(to)
      expect(applyRequest(job, cancel)).toBe(job)
      expect(applyRequest(job, pause)).toBe(job)
    }
  })

  test('to cancel keeps the error and the counters of the attempt, and sets the reason and keepMs', () => {
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

  test('to pause keeps the delay and the streak', () => {
    const paused = applyRequest(settled('retrying'), pause)
    expect(paused).toEqual({ ...settled('paused'), reason: 'later' })
    expect(isFinal(paused.to)).toBe(false)
  })
})

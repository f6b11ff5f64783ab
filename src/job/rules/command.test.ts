import { describe, expect, test } from 'vitest'
import type { Command } from './command.js'
import { decideCommand, resumedState } from './command.js'
import { mayMove, STATES } from './states.js'
import type { State } from './states.js'

/** The state that each command leads to, by the present state; none where the command does not apply. */
const TABLE: { readonly [C in Command]: { readonly [S in State]?: State | 'gone' } } = {
  cancel: {
    scheduled: 'cancelled',
    ready: 'cancelled',
    retrying: 'cancelled',
    blocked: 'cancelled',
    paused: 'cancelled',
  },
  unschedule: {
    scheduled: 'cancelled',
    ready: 'cancelled',
    retrying: 'cancelled',
    blocked: 'cancelled',
    paused: 'cancelled',
  },
  retry: { failed: 'ready', cancelled: 'ready', parked: 'ready', retrying: 'ready' },
  delete: {
    scheduled: 'gone',
    ready: 'gone',
    retrying: 'gone',
    blocked: 'gone',
    paused: 'gone',
    parked: 'gone',
    done: 'gone',
    failed: 'gone',
    cancelled: 'gone',
  },
  edit: {
    scheduled: 'scheduled',
    ready: 'ready',
    retrying: 'retrying',
    blocked: 'blocked',
    paused: 'paused',
    parked: 'ready',
  },
  pause: { scheduled: 'paused', ready: 'paused', retrying: 'paused', blocked: 'paused', paused: 'paused' },
  resume: { paused: 'ready' },
}

/** The commands that are requests on a running job. */
const REQUESTED: { readonly [C in Command]?: string } = { cancel: 'cancel', pause: 'pause', resume: 'resume' }

const COMMANDS = Object.keys(TABLE) as Command[]

describe.each(COMMANDS)('the command %s', (command) => {
  test.each(STATES)('on a job that is %s', (state) => {
    expect(decideCommand(state, command)?.to).toBe(TABLE[command][state])
  })

  test('makes only legal moves', () => {
    for (const state of STATES) {
      const to = decideCommand(state, command)?.to
      if (to !== undefined && to !== 'gone') expect(mayMove(state, to), `${state} to ${to}`).toBe(true)
    }
  })

  test('never changes the state of a running job, and requests the change instead', () => {
    const request = REQUESTED[command]
    expect(decideCommand('running', command)).toEqual(request === undefined ? null : { request })
  })
})

test('a resumed job waits for what it waited for before, and is ready when it is due', () => {
  expect(resumedState({ isDue: true, hasFailed: true })).toBe('ready')
  expect(resumedState({ isDue: true, hasFailed: false })).toBe('ready')
  expect(resumedState({ isDue: false, hasFailed: true })).toBe('retrying')
  expect(resumedState({ isDue: false, hasFailed: false })).toBe('scheduled')
  for (const isDue of [true, false])
    for (const hasFailed of [true, false]) expect(mayMove('paused', resumedState({ isDue, hasFailed }))).toBe(true)
})

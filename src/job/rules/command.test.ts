import { describe, expect, test } from 'vitest'
import type { Command } from './command.js'
import { decideCommand, resumedState } from './command.js'
import { mayMove, STATES } from './states.js'
import type { State } from './states.js'

/** What each command makes of each state; nothing where it means nothing. */
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

/** What may only be asked of a job whose handler runs. */
const ASKED: { readonly [C in Command]?: string } = { cancel: 'cancel', pause: 'pause', resume: 'resume' }

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

  test('never moves a job whose handler runs, and asks it for what can be asked', () => {
    const ask = ASKED[command]
    expect(decideCommand('running', command)).toEqual(ask === undefined ? null : { ask })
  })
})

test('a resumed job goes back to what it waited for, and into the line when its time has come', () => {
  expect(resumedState({ isDue: true, hasFailed: true })).toBe('ready')
  expect(resumedState({ isDue: true, hasFailed: false })).toBe('ready')
  expect(resumedState({ isDue: false, hasFailed: true })).toBe('retrying')
  expect(resumedState({ isDue: false, hasFailed: false })).toBe('scheduled')
  for (const isDue of [true, false])
    for (const hasFailed of [true, false]) expect(mayMove('paused', resumedState({ isDue, hasFailed }))).toBe(true)
})

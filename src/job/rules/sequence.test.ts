import { describe, expect, test } from 'vitest'
import { decideSequence, itemAddress, positionAfter, sequenceState } from './sequence.js'
import type { SequencePlace, SequenceVerb } from './sequence.js'
import { STATES } from './states.js'

const VERBS: readonly SequenceVerb[] = ['start', 'pause', 'resume', 'cancel', 'reset']
const RESET = { reset: true }

/** The table: what each verb does in each place, in the order of VERBS. */
const TABLE: readonly [SequencePlace, readonly (object | null)[]][] = [
  [place('paused', true), [{ to: 'ready' }, null, null, { to: 'cancelled' }, RESET]],
  [place('ready'), [null, { to: 'paused' }, null, { to: 'cancelled' }, RESET]],
  [place('scheduled'), [null, { to: 'paused' }, null, { to: 'cancelled' }, RESET]],
  [place('retrying'), [null, { to: 'paused' }, null, { to: 'cancelled' }, RESET]],
  [place('running'), [null, { request: 'pause' }, null, { request: 'cancel' }, RESET]],
  [place('running', false, 'pause'), [null, null, { request: 'resume' }, { request: 'cancel' }, RESET]],
  [place('running', false, 'cancel'), [null, null, null, { already: true }, RESET]],
  [place('paused'), [null, null, { to: 'ready' }, { to: 'cancelled' }, RESET]],
  [place('done'), [null, null, null, null, RESET]],
  [place('failed'), [null, null, { to: 'ready' }, null, RESET]],
  [place('parked'), [null, null, { to: 'ready' }, null, RESET]],
  [place('cancelled'), [null, null, null, null, RESET]],
]

function place(
  state: SequencePlace['state'],
  isUnstarted = false,
  requested: SequencePlace['requested'] = null,
): SequencePlace {
  return { state, isUnstarted, requested }
}

describe('the verbs of a sequence', () => {
  test.each(TABLE)('in %o are those of the table', (at, moves) => {
    expect(VERBS.map((verb) => decideSequence(at, verb))).toEqual(moves)
  })
})

test('every state of its job is one state of the sequence', () => {
  expect(STATES.map((state) => [state, sequenceState({ state, isUnstarted: false })])).toEqual([
    ['scheduled', 'running'],
    ['ready', 'running'],
    ['retrying', 'running'],
    ['blocked', 'running'],
    ['paused', 'paused'],
    ['parked', 'failed'],
    ['running', 'running'],
    ['done', 'done'],
    ['failed', 'failed'],
    ['cancelled', 'cancelled'],
  ])
  expect(sequenceState({ state: 'paused', isUnstarted: true })).toBe('waiting')
  expect(sequenceState({ state: 'cancelled', isUnstarted: true })).toBe('cancelled')
})

test('addresses sort as their items do', () => {
  const indexes = [0, 9, 10, 99, 100, 999_999]
  expect(indexes.map(itemAddress).sort()).toEqual(indexes.map(itemAddress))
  expect(itemAddress(12)).toBe('000000012')
})

test('a sequence continues after the last answer, or at the open row with its attempts', () => {
  expect(positionAfter(undefined)).toEqual({ index: 0, attempt: 0 })
  expect(positionAfter({ address: '000000006', isAnswered: true, attempt: 3 })).toEqual({ index: 7, attempt: 0 })
  expect(positionAfter({ address: '000000006', isAnswered: false, attempt: 3 })).toEqual({ index: 6, attempt: 3 })
})

import { expect, test } from 'vitest'
import { EMPTY_HINT } from '../../hint.js'
import { hintPayload, mergePayloads } from './session.js'

test.each([
  [{}, 'me'],
  [{ ready: true }, 'me ready'],
  [{ dueInMs: 0 }, 'me due'],
  [{ dueInMs: 500 }, 'me due'],
  [{ settled: true }, 'me settled'],
  [{ requested: true }, 'me requested'],
  [{ ready: true, dueInMs: 1, settled: true, requested: true }, 'me ready due settled requested'],
])('the hint %j is notified as "%s"', (hint, payload) => {
  expect(hintPayload('me', { ...EMPTY_HINT, ...hint })).toBe(payload)
})

test('merged payloads name each change once', () => {
  expect(mergePayloads('me ready', 'me due ready settled')).toBe('me ready due settled')
  expect(mergePayloads('me ready', 'me ready')).toBe('me ready')
})

import { expect, test } from 'vitest'
import { isExcused } from './exceptions.js'

const exception = {
  rule: 'a rule',
  file: 'src/worker/beat.ts',
  saying: 'setInterval',
  reason: 'runs in its own thread',
}

test('an exception excuses only its rule, its file and its message', () => {
  const breach = { file: 'src/worker/beat.ts', line: 3, what: 'uses setInterval, in a string' }
  expect(isExcused(breach, 'a rule', [exception])).toBe(true)
  expect(isExcused(breach, 'another rule', [exception])).toBe(false)
  expect(isExcused({ ...breach, file: 'src/worker/attempt/run.ts' }, 'a rule', [exception])).toBe(false)
  expect(isExcused({ ...breach, what: 'uses Math.random' }, 'a rule', [exception])).toBe(false)
})

import { expect, test } from 'vitest'
import { errorLines } from './log-error.js'

const shown = (thrown: unknown): string[] => errorLines(thrown).map(({ text }) => text)

function failing(message: string, stack: readonly string[], more: object = {}): Error {
  const error = new Error(message)
  return Object.assign(
    error,
    { stack: [`Error: ${message}`, ...stack.map((frame) => `    at ${frame}`)].join('\n') },
    more,
  )
}

test('the frames are the first five of the app, without those of Node and of dependencies', () => {
  const own = new URL('../worker/attempt/run.js', import.meta.url).pathname
  const error = failing('no', [
    'Socket.connect (node:net:1:2)',
    'query (/app/node_modules/pg/lib/client.js:1:2)',
    ...[1, 2, 3, 4, 5, 6].map((n) => `step${n} (file:///app/jobs.js:${n}:1)`),
    `runAttempt (file://${own}:1:2)`,
  ])
  expect(shown(error)).toEqual([
    'Error: no',
    ...[1, 2, 3, 4, 5].map((n) => `    at step${n} (file:///app/jobs.js:${n}:1)`),
  ])
})

test('without frames of the app, those of dependencies are shown, and never those of this package', () => {
  const own = new URL('../worker/attempt/run.js', import.meta.url).pathname
  const stack = [
    'connect (node:net:1:2)',
    'query (C:\\app\\node_modules\\pg\\client.js:1:2)',
    `runAttempt (file://${own}:1:2)`,
  ]
  expect(shown(failing('no', stack))).toEqual(['Error: no', '    at query (C:\\app\\node_modules\\pg\\client.js:1:2)'])
})

test('fields, the errors of an aggregate and causes follow, each once', () => {
  const cause = failing('inner', [], { code: 'ECONNREFUSED', request: { headers: {} } })
  cause.cause = cause
  const error = Object.assign(new AggregateError([failing('a', []), 'b'], 'outer', { cause }), {
    stack: '',
    status: 503,
  })
  expect(shown(error)).toEqual([
    'AggregateError: outer',
    '    status=503',
    '- Error: a',
    '- b',
    'caused by Error: inner',
    '    code=ECONNREFUSED',
  ])
})

test('an error of a class without its own name shows the class name', () => {
  class HttpError extends Error {}
  expect(shown(new HttpError('busy'))[0]).toBe('HttpError: busy')
  expect(shown(Object.assign(new HttpError('busy'), { name: 'Busy' }))[0]).toBe('Busy: busy')
})

test('a long message is cut, and an unreadable error does not throw', () => {
  expect(shown(failing('x\n'.repeat(50), []))).toHaveLength(11)
  const hostile = new Proxy(new Error('x'), {
    get: () => {
      throw new Error('trap')
    },
  })
  expect(shown(hostile)).toEqual(['an error that cannot be shown'])
  expect(shown('just text')).toEqual(['just text'])
})

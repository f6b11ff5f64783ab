import assert from 'node:assert/strict'
import { test } from 'vitest'
import { failureOf, SAMPLE_MESSAGE_MAX } from './failure.js'

const error = (stack: string, change: object = {}): Parameters<typeof failureOf>[1] => ({
  name: 'Error',
  message: 'no',
  stack: `Error: no\n${stack}`,
  ...change,
})

test('failures of one job, class and place are one group, whatever the message, line, machine and depth', () => {
  const one = failureOf('charge', error('    at pay (/srv/a/app/src/pay.ts:10:5)\n    at run (/srv/a/app/x.ts:1:1)'))
  const other = failureOf('charge', error('    at async pay (file:///home/b/app/src/pay.ts:99:1)', { message: 'yes' }))
  assert.equal(one.place, 'pay (src/pay.ts)')
  assert.equal(other.fingerprint, one.fingerprint)
  assert.match(one.fingerprint, /^[0-9a-f]{16}$/)
})

test('another job, class or place is another group', () => {
  const at = (job: string, stack: string, change?: object): string => failureOf(job, error(stack, change)).fingerprint
  const prints = [
    at('charge', 'at pay (/a/src/pay.ts:1:1)'),
    at('refund', 'at pay (/a/src/pay.ts:1:1)'),
    at('charge', 'at fetch (/a/src/pay.ts:1:1)'),
    at('charge', 'at pay (/a/src/other.ts:1:1)'),
    at('charge', 'at pay (/a/src/pay.ts:1:1)', { type: 'HttpError' }),
    at('charge', 'at pay (/a/src/pay.ts:1:1)', { name: 'TypeError' }),
  ]
  assert.equal(new Set(prints).size, prints.length)
})

test('the place is the first frame of the code of the app', () => {
  const stack = [
    '    at internalConnect (node:net:1:1)',
    '    at Pool.query (/app/node_modules/pg/lib/pool.js:5:1)',
    '    at new Cart (C:\\app\\src\\cart.ts:7:3)',
  ].join('\n')
  assert.equal(failureOf('a', error(stack)).place, 'new Cart (src/cart.ts)')
  assert.equal(failureOf('a', error('    at node:net:12:3')).place, 'node:net:12')
  assert.equal(failureOf('a', error('    at file:///app/src/top.mjs?v=2:4:1')).place, 'src/top.mjs:4')
  assert.equal(failureOf('a', { name: 'NonError', message: '7' }).place, '')
})

test('a long place is cut', () => {
  const at = (length: number): string => failureOf('a', error(`    at ${'f'.repeat(length)} (/a/b.ts:1:1)`)).place
  assert.deepEqual([at(180).length, at(191).length, at(5_000).length], [189, 200, 200])
})

test('a sample keeps the start of a long message', () => {
  assert.equal(failureOf('a', { name: 'Error', message: 'x'.repeat(5_000) }).message?.length, SAMPLE_MESSAGE_MAX)
})

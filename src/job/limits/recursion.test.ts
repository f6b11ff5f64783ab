import { expect, test } from 'vitest'
import { isRunaway, nextChain, RECURSION_DEPTH, RECURSION_WITHIN_MS } from './recursion.js'
import type { EnqueueChain } from './recursion.js'

function chainOf(steps: number, everyMs: number): EnqueueChain {
  let chain: EnqueueChain | undefined
  for (let step = 0; step < steps; step += 1) chain = nextChain(chain, step * everyMs)
  return chain as EnqueueChain
}

test('a chain past its depth within a minute is a runaway, and a slow one never is', () => {
  expect(isRunaway(chainOf(RECURSION_DEPTH, 1))).toBe(false)
  expect(isRunaway(chainOf(RECURSION_DEPTH + 1, 1))).toBe(true)
  expect(isRunaway(chainOf(10 * RECURSION_DEPTH, RECURSION_WITHIN_MS / RECURSION_DEPTH + 1))).toBe(false)
})

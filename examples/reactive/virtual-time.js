import assert from 'node:assert/strict'
import { createSimulation, sleep, spin, step, waitFor } from 'millrace/reactive'

/** The code under test: tries, waits a minute, tries again, three times in all. */
const retrying = (attempt) =>
  spin(function* () {
    for (let n = 1; n <= 3; n++) {
      try {
        return yield* step(`try ${n}`, () => attempt(n))
      } catch (error) {
        if (n === 3) throw error
        yield* waitFor(sleep(60_000))
      }
    }
  })

// The test: an hour passes at once, and always in the same way.
const ctx = createSimulation()
const tries = []
const result = ctx.run(
  ctx.enter(() =>
    retrying((n) => {
      tries.push(ctx.now())
      if (n < 3) throw new Error('not yet')
      return 'done'
    }),
  ),
)

assert.deepEqual(tries, [0])
assert.equal(ctx.inspect().timers, 1)
ctx.advanceBy(3_600_000)
assert.deepEqual(tries, [0, 60_000, 120_000])
assert.equal(await result, 'done')
assert.equal(ctx.inspect().timers, 0)
console.log('an hour was tested')
// -> an hour was tested

await ctx.close()

import { build } from './build.mjs'
import { tell } from './run.mjs'

/**
 * `node scripts/measure-sequence.mjs [items] [store]`: what an item of a sequence costs, from the first to the last. In memory by
 * default: a file adds one flush for each item, which hides the rest.
 */
const PARTS = 10
tell(await build())
const { job, millrace } = await import(new URL('../dist/index.js', import.meta.url).href)
const total = Number(process.argv[2] ?? 100_000)
const began = []
const echo = job('echo', (n) => {
  began.push(performance.now())
  return n
})

const mill = await millrace({ store: process.argv[3] ?? ':memory:', jobs: [echo], logger: false })
const written = performance.now()
const sequence = await mill.sequence(
  echo,
  Array.from({ length: total }, (_, i) => i),
)
console.log(`${total} items written in ${((performance.now() - written) / 1_000).toFixed(2)} s`)
await mill.start()
await sequence.result()

const size = Math.floor(total / PARTS)
for (let part = 0; part < PARTS; part += 1) {
  const [first, last] = [part * size, (part + 1) * size - 1]
  const each = ((began[last] - began[first]) / (size - 1)) * 1_000
  console.log(`items ${first} to ${last}: ${each.toFixed(0)} µs each`)
}
const read = performance.now()
for (let i = 0; i < 1_000; i += 1) await sequence.progress()
console.log(`progress: ${(performance.now() - read).toFixed(0)} µs`)
await mill.close()

import { createSimulation, read, signal, spin } from 'millrace/reactive'

const ctx = createSimulation()
const { rate, hours, bill } = ctx.enter(() => {
  const rate = signal(80)
  const hours = signal(10)
  const bill = spin(function* () {
    return (yield* read(rate)) * (yield* read(hours))
  })
  return { rate, hours, bill }
})
ctx.spawn(bill)

// A fork sees everything of its parent. What it writes, only it sees.
const fork = ctx.fork()
fork.enter(() => rate.set(90))
console.log(`what if: ${await fork.run(bill)}, as it is: ${await ctx.run(bill)}`)
// -> what if: 900, as it is: 800

// The parent goes on, and the fork follows in what it has not written itself.
hours.set(11)
console.log(`what if: ${await fork.run(bill)}, as it is: ${await ctx.run(bill)}`)
// -> what if: 990, as it is: 880

// Take the change over, or drop the fork.
ctx.enter(() => rate.set(fork.enter(() => rate.get())))
await fork.close()
console.log(`from now on: ${await ctx.run(bill)}`)
// -> from now on: 990

await ctx.close()

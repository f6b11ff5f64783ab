import { cpuUs } from '../clock.mjs'

const TIMES = 7

/** The CPU time to drain messages that were posted in one turn: a tenth of them, and all. */
export async function run({ count, dist }, contestant) {
  const { library } = await contestant.open({ dist })
  await drain(library, count / 10) // Compiles the code.
  const [few, many] = [[], []]
  for (let i = 0; i < TIMES; i += 1) {
    few.push(await drain(library, count / 10))
    many.push(await drain(library, count))
  }
  const [fewUs, manyUs] = [Math.min(...few), Math.min(...many)]
  return { fewUs, manyUs, quotient: manyUs / fewUs }
}

async function drain({ createContext, mailbox, iterate, waitFor }, count) {
  const context = createContext()
  let taken = 0
  const box = context.enter(() => mailbox())
  const all = context.run(() =>
    iterate(0, function* (n) {
      yield* waitFor(box)
      taken += 1
      return n + 1 === count ? { done: n } : { next: n + 1 }
    }),
  )
  const began = cpuUs()
  context.enter(() => {
    for (let i = 0; i < count; i += 1) box.post(i)
  })
  await all
  const us = cpuUs() - began
  await context.close()
  if (taken !== count) throw new Error(`${taken} of ${count} messages were taken`)
  return us
}

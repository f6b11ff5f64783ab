import { cpuUs } from '../clock.mjs'
import { SHAPES } from '../reactive/graph-shapes.mjs'

/** A sample is at least this long, so that the kernel's accounting is finer than the differences. */
const SAMPLE_US = 40_000

/** One graph shape in one library: the CPU time of one turn, the best of some samples after a warm-up. */
export async function run({ shape, samples, dist }, contestant) {
  const library = await contestant.open({ dist })
  return library.within(() => {
    const turn = SHAPES[shape](library)
    let turns = 0
    const turnFor = (us) => {
      const began = cpuUs()
      const first = turns
      do turn(turns++)
      while (cpuUs() - began < us)
      return (cpuUs() - began) / (turns - first)
    }
    turnFor(5 * SAMPLE_US) // Compiles the code.
    const each = Array.from({ length: samples }, () => turnFor(SAMPLE_US))
    return { us: Math.min(...each) }
  })
}

import { runTask } from '../child.mjs'
import { inRounds } from '../rounds.mjs'
import { showSummary } from '../table.mjs'
import { LIBRARIES, casesOf, keyOf, taskOf } from './libraries.mjs'

const SHARED = ['signal', 'unread computed', 'observed computed']
/** What only millrace/reactive has. */
const OWN = ['idle spin, 2 dependencies', 'context', 'fork, before its first write']

const bytes = (result) => result.bytes

/** Bytes of heap for each cell, after a collection. The figures hardly vary, so two rounds are enough. */
export async function scenario(bench) {
  const { options, place, nodeArgs } = bench
  const own = OWN.map((name) => ({ key: keyOf(name, 'millrace'), name, library: 'millrace' }))
  const plan = { ...bench.plan('memory'), rounds: Math.min(2, options.rounds), cases: [...casesOf(SHARED), ...own] }
  const rounds = await inRounds(plan, ({ name, library }) =>
    runTask(taskOf(place, library, 'reactive-memory', { kind: name }), { nodeArgs: ['--expose-gc', ...nodeArgs] }),
  )
  const shown = (name, library) => showSummary(rounds.summary(keyOf(name, library), bytes))
  const gate = (name, most) => ({
    name: `bytes for each ${name}`,
    measured: rounds.summary(keyOf(name, 'millrace'), bytes),
    unit: 'B',
    most,
  })
  return {
    name: 'memory',
    title: 'memory: bytes of heap for each',
    heads: ['', ...Object.keys(LIBRARIES)],
    rows: [...SHARED, ...OWN].map((name) => [name, ...Object.keys(LIBRARIES).map((library) => shown(name, library))]),
    gates: [gate('signal', 180), gate('idle spin, 2 dependencies', 1000), gate('fork, before its first write', 2048)],
    rounds,
  }
}

import { runTask } from '../child.mjs'
import { summarise } from '../figures.mjs'
import { inRounds } from '../rounds.mjs'
import { showSummary } from '../table.mjs'
import { CELLX, KAIRO, SMALL } from './graph-shapes.mjs'
import { ONE_THREAD, casesOf, keyOf, taskOf } from './libraries.mjs'

const SAMPLES = 5
const us = (result) => result.us

/** Signals, computeds and effects beside the two libraries that are closest in kind. */
export async function scenario(bench) {
  const { options, place, nodeArgs } = bench
  const names = Object.keys({ ...KAIRO, ...CELLX, ...SMALL })
  const samples = options.quick ? 1 : SAMPLES
  const rounds = await inRounds({ ...bench.plan('shapes'), cases: casesOf(names) }, ({ name, library }) =>
    runTask(taskOf(place, library, 'reactive-shape', { shape: name, samples }), {
      nodeArgs: [...ONE_THREAD, ...nodeArgs],
    }),
  )
  return {
    name: 'shapes',
    title: 'shapes: CPU time of one turn, in µs; every write is followed by its effects',
    heads: ['', 'millrace', 'preact', 'alien', 'millrace / preact', 'millrace / alien'],
    rows: names.map((name) => rowOf(rounds, name)),
    notes: [`geometric mean of the nine shapes: ${showSummary(meanOf(rounds, 'alien'))} × alien-signals`],
    gates: gatesOf(rounds),
    rounds,
  }
}

function rowOf(rounds, name) {
  const [ours, preact, alien] = ['millrace', 'preact', 'alien'].map((library) => keyOf(name, library))
  return [
    name,
    ...[ours, preact, alien].map((key) => showSummary(rounds.summary(key, us))),
    showSummary(rounds.ratio(ours, preact, us)),
    showSummary(rounds.ratio(ours, alien, us)),
  ]
}

/** The geometric mean of the quotients, round by round. */
function meanOf(rounds, other) {
  const ours = Object.keys(KAIRO).map((name) => rounds.values(keyOf(name, 'millrace'), us))
  const theirs = Object.keys(KAIRO).map((name) => rounds.values(keyOf(name, other), us))
  const means = ours[0].map((_, round) => {
    const logs = ours.map((values, shape) => Math.log(values[round] / theirs[shape][round]))
    const mean = Math.exp(logs.reduce((sum, log) => sum + log, 0) / logs.length)
    return Number.isNaN(mean) ? undefined : mean
  })
  return summarise(means)
}

function gatesOf(rounds) {
  const quotient = (name, most) => ({
    name: `${name} / preact`,
    measured: rounds.ratio(keyOf(name, 'millrace'), keyOf(name, 'preact'), us),
    unit: '×',
    most,
  })
  return [
    { name: 'geometric mean of the nine shapes / preact', measured: meanOf(rounds, 'preact'), unit: '×', most: 1.2 },
    ...Object.keys(KAIRO).map((name) => quotient(name, 3)),
    quotient('cellx1000', 1.5),
    quotient('create signals', 2),
    quotient('unobserved write', 3),
    quotient('write, 1 effect', 2.7),
  ]
}

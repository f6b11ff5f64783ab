import { percent } from '../figures.mjs'
import { SMALL } from '../payloads.mjs'
import { inRounds } from '../rounds.mjs'
import { CLIENT, measureCase, PARTIES, RATE, rateOf, SERVER, tableOf } from './cases.mjs'

/** The part of `--jobs` that is run; the part of `--others` in a short backlog. */
const JOBS_SHARE = 5
const OTHERS_SHARE = 50
const QUEUES = 10

/** Some jobs beside a great many that are not for this worker, against the same beside a few of them. */
export async function scenario(bench) {
  const { options, place } = bench
  const jobs = Math.ceil(options.jobs / JOBS_SHARE)
  const cases = casesOf(options.others, jobs)
  const rounds = await inRounds({ ...bench.plan('backlog'), cases }, ({ key, party, groups, others }) => {
    const steps = [{ task: 'fill', contestant: PARTIES[party].contestant, bytes: SMALL, groups }]
    return measureCase(bench, { task: 'drain', party, jobs, left: others, template: place.template(key, steps) })
  })
  const columns = [RATE, ['first job ms', (r) => r.firstMs], ['jobs/s from the first', flowOf], CLIENT, SERVER]
  return {
    name: 'backlog',
    title: 'backlog: no-op jobs beside others that wait and are not for this worker, 20 B, analysed',
    ...tableOf(cases, rounds, columns),
    gates: gatesOf(cases, rounds),
    rounds,
  }
}

/** Contestants without queues use other names instead. pg-boss has a queue for each name. */
function casesOf(most, jobs) {
  const few = Math.ceil(most / OTHERS_SHARE)
  const mine = { count: jobs }
  const elsewhere = (others) =>
    Array.from({ length: QUEUES }, (_, i) => ({ count: others / QUEUES, queue: `other-${i}`, name: `other-${i}` }))
  const unknown = (others) => [{ count: others, name: 'unknown-here' }]
  const of = (party, where, fill) =>
    [few, most].map((others) => ({
      key: `${party}, ${others.toLocaleString('en-US')} ${where}`,
      about: `${party}, ${where}`,
      party,
      jobs,
      others,
      groups: [...fill(others), mine],
    }))
  return [
    ...of('millrace', 'in other queues', elsewhere),
    ...of('millrace', 'in this queue under an unknown name', unknown),
    ...of('graphile-worker tuned', 'under other names', elsewhere),
    ...of('pg-boss tuned', 'in other queues', elsewhere),
    ...of('bare, lease and cursor', 'under other names', elsewhere),
  ]
}

/** From the first handler on, where a slow start cannot hide it. */
const flowOf = (r) => (r.rate * r.ms) / (r.ms - r.firstMs)

function gatesOf(cases, rounds) {
  const abouts = new Set(cases.filter(({ party }) => party === 'millrace').map(({ about }) => about))
  return [...abouts].map((about) => {
    const [few, most] = cases.filter((each) => each.about === about).map(({ key }) => key)
    const both = [rateOf, flowOf].map((pick) => percent(rounds.ratio(most, few, pick)))
    const isWhole = both.every((each) => each !== undefined)
    return {
      name: `backlog, ${about}: part of the rate beside a fiftieth of them (the worse of whole and from the first)`,
      measured: isWhole ? both.toSorted((a, b) => a.median - b.median)[0] : undefined,
      unit: '%',
      least: 80,
    }
  })
}

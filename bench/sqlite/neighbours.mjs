import { percent } from '../figures.mjs'
import { measureOn } from '../measure.mjs'
import { SMALL } from '../payloads.mjs'
import { inRounds } from '../rounds.mjs'
import { showSummary } from '../table.mjs'

const QUEUES = 10

/** A few jobs beside a great many that are not for this worker, against the same few on an empty file. */
export async function scenario(bench) {
  const { options, place } = bench
  const jobs = Math.ceil(options.jobs / 10)
  const cases = casesOf(options.others, jobs)
  const rounds = await inRounds({ ...bench.plan('neighbours'), cases }, async ({ key, steps, expected }) =>
    measureOn(bench, {
      template: await place.template(key, steps),
      spec: { task: 'drain', contestant: 'millrace', durability: 'power', jobs, concurrency: options.concurrency },
      expected,
    }),
  )
  const numbers = [jobs, options.others].map((n) => n.toLocaleString('en-US'))
  return {
    name: 'neighbours',
    title: `neighbours: ${numbers[0]} jobs beside ${numbers[1]} others, FULL, 20 B`,
    ...tableOf(cases, rounds),
    gates: gatesOf(cases, rounds),
    rounds,
  }
}

function casesOf(others, jobs) {
  const fill = (...groups) => ({ task: 'fill', contestant: 'millrace', bytes: SMALL, groups })
  const mine = { count: jobs }
  const elsewhere = Array.from({ length: QUEUES }, (_, i) => ({
    count: others / QUEUES,
    queue: `other-${i}`,
    name: `other-${i}`,
  }))
  const workOff = { task: 'drain', contestant: 'millrace', durability: 'process', jobs: others, concurrency: 10 }
  return [
    { key: 'empty file', steps: [fill(mine)], expected: { done: jobs, left: 0 } },
    {
      key: 'waiting in other queues',
      steps: [fill(...elsewhere, mine)],
      expected: { done: jobs, left: others },
    },
    {
      key: 'kept in history',
      steps: [fill({ count: others }), workOff, fill(mine)],
      expected: { done: jobs + others, left: 0 },
    },
    {
      key: 'same queue, unknown name',
      steps: [fill({ count: others, name: 'unknown-here' }, mine)],
      expected: { done: jobs, left: others },
    },
  ]
}

/** Whole: including the first claim. Flow: from the first handler on, where a slow start cannot hide it. */
const whole = (r) => r.rate
const flow = (r) => (r.rate * r.ms) / (r.ms - r.firstMs)

function tableOf(cases, rounds) {
  return {
    heads: ['', 'jobs/s', 'first job ms', 'jobs/s from the first', 'CPU µs/job'],
    rows: cases.map(({ key }) => [
      key,
      ...[whole, (r) => r.firstMs, flow, (r) => r.cpuUsPerJob].map((pick) => showSummary(rounds.summary(key, pick))),
    ]),
  }
}

function gatesOf([empty, ...beside], rounds) {
  return beside.map(({ key }) => {
    const both = [whole, flow].map((pick) => percent(rounds.ratio(key, empty.key, pick)))
    const worse = both.every((each) => each !== undefined) ? both.toSorted((a, b) => a.median - b.median)[0] : undefined
    return {
      name: `neighbours, ${key}: part of the rate on an empty file (the worse of whole and flow)`,
      measured: worse,
      unit: '%',
      least: 80,
    }
  })
}

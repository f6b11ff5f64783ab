import { measureOn } from '../measure.mjs'
import { showSummary } from '../table.mjs'

/**
 * The contestants and their settings. `ends`: whether an ended job is kept or deleted, which decides what must be counted afterwards.
 * `tables`: settings that the tables must be created with.
 */
export const PARTIES = {
  millrace: { contestant: 'postgres/millrace', ends: 'kept' },
  'millrace, keep none': { contestant: 'postgres/millrace', keep: 'none', ends: 'deleted' },
  'graphile-worker tuned': { contestant: 'postgres/graphile', tuned: true, ends: 'deleted' },
  'graphile-worker': { contestant: 'postgres/graphile', ends: 'deleted' },
  'graphile-worker, 10 at once': { contestant: 'postgres/graphile', concurrentJobs: 10, ends: 'deleted' },
  'pg-boss tuned': { contestant: 'postgres/pg-boss', ends: 'kept' },
  'pg-boss notified': { contestant: 'postgres/pg-boss', tables: { notify: true }, ends: 'kept' },
  bullmq: { contestant: 'postgres/bullmq', ends: 'deleted' },
  bare: { contestant: 'postgres/bare', ends: 'kept' },
  'bare, kept': { contestant: 'postgres/bare', way: 'kept', ends: 'kept' },
  'bare, deleted': { contestant: 'postgres/bare', way: 'deleted', ends: 'deleted' },
  'bare, lease': { contestant: 'postgres/bare', way: 'lease', ends: 'deleted' },
  'bare, lease and cursor': { contestant: 'postgres/bare', way: 'cursor', ends: 'deleted' },
  'bare, notified': { contestant: 'postgres/bare', listen: true, ends: 'kept' },
}

/** Cases whose contestant can run here: without Redis there is no BullMQ. */
export function present({ place }, cases) {
  return cases.filter(({ party }) => party !== 'bullmq' || place.redis !== undefined)
}

/** One line for each contestant that cannot run. */
export function absent({ place }) {
  return place.redis === undefined ? ['bullmq: left out, as there is no redis-server in PATH or /usr/bin'] : []
}

/** The place of a party: all but one are on PostgreSQL. */
export function placeOf({ place }, party) {
  return party === 'bullmq' ? place.redis : place
}

/**
 * One measurement of a case.
 * @param {object} bench
 * @param {{ party: string, jobs: number, template: Promise<unknown>, left?: number, run?: Function, expected?: object }} what
 *   `left`: jobs of others that must still be there
 */
export async function measureCase(bench, { party, jobs, template, left = 0, run, expected, ...spec }) {
  const { ends, tables, ...settings } = PARTIES[party]
  return measureOn(
    { ...bench, place: placeOf(bench, party) },
    {
      template: await template,
      spec: { concurrency: bench.options.concurrency, ...settings, ...tables, ...spec, jobs },
      expected: expected ?? { done: ends === 'kept' ? jobs : 0, left },
      ...(run === undefined ? {} : { run }),
    },
  )
}

/** The tables of a contestant, empty or with this many waiting jobs. Contestants with the same tables share them. */
export function waiting(bench, party, bytes, jobs, how) {
  const { contestant, tables = {} } = PARTIES[party]
  const groups = jobs === 0 ? [] : [{ count: jobs }]
  const step = { task: 'fill', contestant, ...tables, bytes, groups }
  return placeOf(bench, party).template(JSON.stringify(step), [step], how)
}

/** Of the rounds, a table: `columns` is [head, how to read it from a result]. */
export function tableOf(cases, rounds, columns) {
  return {
    heads: ['', 'jobs', ...columns.map(([head]) => head)],
    rows: cases.map(({ key, jobs }) => [
      key,
      jobs.toLocaleString('en-US'),
      ...columns.map(([, pick]) => showSummary(rounds.summary(key, pick))),
    ]),
  }
}

export const rateOf = (result) => result.rate
export const RATE = ['jobs/s', rateOf]
export const CLIENT = ['client CPU µs/job', (result) => result.cpuUsPerJob]
export const SERVER = ['server CPU µs/job', (result) => result.serverUsPerJob]

/** A gate on the quotient of two cases. */
export function beside(rounds, name, [above, below], limits, pick = rateOf) {
  return { name, measured: rounds.ratio(above, below, pick), unit: '×', ...limits }
}

import type { DeployMark, OverviewFields, SeriesShown, Span } from '../../../protocol.js'
import { SPANS } from '../../../protocol.js'
import type { ChartMark, ChartProps, ChartSeries } from '../../parts/chart/chart.js'
import { duration, seconds } from '../../format/duration.js'
import { UNKNOWN, bounded, count, plural, rate, whole } from '../../format/number.js'
import { clockTime, dayAndTime } from '../../format/time.js'
import type { Zone } from '../../format/time.js'
import { jobsHref } from '../../route.js'

export interface Tile {
  readonly name: string
  readonly number: string
  readonly unit: string
  readonly note: string
  readonly href: string
  readonly title?: string
  readonly ink?: string
}

/** The six numbers that say how the system does. */
export function tiles(fields: OverviewFields, now: number, zone: Zone): Tile[] {
  const { failed, waiting, longestWait, slots, donePerMinute, span } = fields
  return [
    {
      name: 'Done',
      number: rate(donePerMinute),
      unit: '/ min',
      note: `${whole(sum(fields.series.done))} in ${span}`,
      href: jobsHref('state:done'),
    },
    failedTile(failed, span),
    {
      name: 'Waiting',
      number: bounded(waiting.n, waiting.exact),
      unit: waiting.n === 1 ? 'job' : 'jobs',
      note: '',
      href: jobsHref('state:ready,retrying,blocked'),
      title: whole(waiting.n),
    },
    {
      name: 'Longest wait',
      number: longestWait === null ? UNKNOWN : seconds(Math.max(0, now - longestWait.since)),
      unit: '',
      note: longestWait === null ? (waiting.n === 0 ? 'no job waits' : 'no job is due') : `in ${longestWait.queue}`,
      href: longestWait === null ? '#/queues' : `#/queues/${encodeURIComponent(longestWait.queue)}`,
    },
    {
      name: 'Slots',
      number: count(slots.busy),
      unit: slots.all === null ? 'busy' : `of ${count(slots.all)} busy`,
      note: freeText(slots),
      href: '#/workers',
    },
    emptyTile(fields, now, zone),
  ]
}

function failedTile(failed: OverviewFields['failed'], span: Span): Tile {
  const note = failed.sinceDeploy === null ? `in ${span}` : `in ${span} · +${count(failed.sinceDeploy)} since ↯`
  const tile = {
    name: 'Failed',
    number: count(failed.n),
    unit: failed.n === 1 ? 'job' : 'jobs',
    note,
    href: '#/failures',
    title: whole(failed.n),
  }
  return failed.n === 0 ? tile : { ...tile, ink: 'failed' }
}

function emptyTile({ waiting, ready, emptyInMs }: OverviewFields, now: number, zone: Zone): Tile {
  const shared = { name: 'Empty in', unit: '', href: '#/queues' }
  if (waiting.n === 0) return { ...shared, number: 'now', note: 'no backlog' }
  if (ready === 0) return { ...shared, number: UNKNOWN, note: 'no job is ready' }
  if (emptyInMs === null) return { ...shared, number: UNKNOWN, note: 'the backlog does not shrink' }
  return { ...shared, number: seconds(emptyInMs), note: `≈ ${dayAndTime(now + emptyInMs, now, zone)}` }
}

function freeText({ busy, all }: OverviewFields['slots']): string {
  if (all === null) return ''
  return all - busy <= 0 ? 'none free' : `${count(all - busy)} free`
}

/** Done, failed and retried, wait and run time: the charts share their time axis. */
export function charts(fields: Pick<OverviewFields, 'series' | 'deploys'>, zone: Zone): ChartProps[] {
  const { series, deploys } = fields
  const shared = { at: series.at, bucketMs: series.bucketMs, marks: deployMarks(deploys, zone) }
  const perBucket = `per ${bucketName(series.bucketMs)}`
  const done: ChartSeries[] = [{ name: 'done', values: series.done, shape: 'area', color: 'fill-done' }]
  const bad: ChartSeries[] = [
    { name: 'failed', values: series.failed, shape: 'columns', color: 'fill-failed' },
    { name: 'retried', values: series.retried, shape: 'line', color: 'fill-retrying', width: 1.5 },
  ]
  return [
    { ...shared, title: `Done ${perBucket}`, series: done, kind: 'count', write: count, summary: summary(done, count) },
    {
      ...shared,
      title: `Failed and retried ${perBucket}`,
      series: bad,
      kind: 'count',
      write: count,
      summary: summary(bad, count),
    },
    {
      ...shared,
      title: 'Wait before a start',
      series: percentiles(series.wait),
      kind: 'duration',
      write: roundDuration,
      summary: summary(percentiles(series.wait), roundDuration),
    },
    {
      ...shared,
      title: 'Run time',
      series: percentiles(series.run),
      kind: 'duration',
      write: roundDuration,
      summary: summary(percentiles(series.run), roundDuration),
    },
  ]
}

/** `1 m`, not `1 m 00 s`: the values of an axis are round. */
function roundDuration(ms: number): string {
  return duration(ms).replace(/ 00\u202f[sm]$/, '')
}

function percentiles({ p50, p95, p99 }: SeriesShown['wait']): ChartSeries[] {
  return [
    { name: 'p50', values: p50, shape: 'line', color: 'text', width: 2 },
    { name: 'p95', values: p95, shape: 'line', color: 'text-2', width: 1.5 },
    { name: 'p99', values: p99, shape: 'line', color: 'text-3', width: 1, isDashed: true },
  ]
}

export function deployMarks(deploys: readonly DeployMark[], zone: Zone): ChartMark[] {
  return deploys.map(({ at, version, workers }) => ({
    at,
    text: `${version ?? 'a deploy'}, ${clockTime(at, zone)}, ${plural(workers, 'worker')}`,
  }))
}

/** `done: now 1,204, highest 1,400, lowest 0.` */
export function summary(series: readonly ChartSeries[], write: (value: number) => string): string {
  const texts = series.map(({ name, values }) => {
    const known = values.filter((value): value is number => value !== null)
    if (known.length === 0) return `${name}: no data.`
    return `${name}: now ${write(known.at(-1) as number)}, highest ${write(Math.max(...known))}, lowest ${write(Math.min(...known))}.`
  })
  return texts.join(' ')
}

/** What the slots run: the largest first, with what is free at the end. */
export interface SlotLine {
  readonly name: string
  readonly count: number
  readonly percent: number
  readonly href: string | undefined
}

export function slotLines({ slotsByJob, slots }: OverviewFields): SlotLine[] {
  const all = slots.all ?? sum(slotsByJob.map((each) => each.count))
  const share = (value: number): number => (all === 0 ? 0 : (100 * value) / all)
  const lines = slotsByJob.map(({ job, count: n }) => ({
    name: job,
    count: n,
    percent: share(n),
    href: jobsHref(`state:running job:${job}`),
  }))
  const free = all - slots.busy
  return free > 0 ? [...lines, { name: 'free', count: free, percent: share(free), href: undefined }] : lines
}

/** `minute`, `5 m`: what a bucket is called in a title. */
function bucketName(bucketMs: number): string {
  if (bucketMs === 60_000) return 'minute'
  if (bucketMs === 3_600_000) return 'hour'
  return roundDuration(bucketMs)
}

export const SPAN_NAMES = Object.keys(SPANS) as Span[]

function sum(values: readonly (number | null)[]): number {
  return values.reduce<number>((total, value) => total + (value ?? 0), 0)
}

import type { ScheduleRecord, TickRecord } from '../../../schedule/record.js'
import { timingOf, nextAfter } from '../../../schedule/ticks.js'
import { readSpec } from '../../../schedule/spec.js'
import { inWords } from '../../../job/why/words.js'
import type { RecurringFields, RecurringListFields, RecurringRow, Tick } from '../../protocol/rows.js'
import { ViewGone } from '../parts.js'
import type { MakeView, Parts } from '../parts.js'
import type { Show } from '../show/redact.js'
import { ms } from './reads.js'
import { ruleText, ruleWords } from './rule-words.js'

const PAGE = 50
const TICKS = 30
const LEDGER = 100
const NEXT = 5
/** So many of the newest ticks must be skipped for an overlap before the page says that the job takes too long. */
const SKIPPED_MIN = 3

/** The recurring jobs, the next one first, and paused ones last. */
export async function readRecurringList(parts: Parts, cursor?: string): Promise<MakeView> {
  const { schedules } = parts.mill
  const list = await schedules.list({ limit: PAGE + 1, ...(cursor === undefined ? {} : { after: cursor }) })
  const page = list.slice(0, PAGE)
  const ticks = await Promise.all(page.map(({ id }) => schedules.ticks(id, { limit: TICKS })))
  const rows = page.map((record, i) => [record, ticks[i] ?? []] as const).toSorted(([a], [b]) => order(a) - order(b))
  return (show) => ({
    fields: { total: page.length } satisfies RecurringListFields,
    rows: rows.map(([record, ledger]) => [record.id, recurringRow(record, ledger, show)]),
    cursor: list.length > PAGE ? (page.at(-1)?.id ?? null) : null,
    absent: ABSENT,
  })
}

const ABSENT = { tookMs: 'How long the job of a tick took is on the page of the job.' }

const order = ({ nextAt, paused }: ScheduleRecord): number =>
  paused ? Infinity : (nextAt?.getTime() ?? Number.MAX_SAFE_INTEGER)

function recurringRow(record: ScheduleRecord, ledger: readonly TickRecord[], show: Show): RecurringRow {
  const { id, job, queue, title, rule, timezone, missed, overlap, jitterMs, paused, pausedAt, nextAt, lastAt } = record
  return {
    id,
    job,
    queue,
    title: show.text(title),
    words: ruleWords(rule),
    rule: ruleText(rule),
    timezone,
    missed,
    overlap,
    jitterMs,
    paused,
    pausedAt: ms(pausedAt),
    nextAt: ms(nextAt),
    lastAt: ms(lastAt),
    ticks: ledger
      .slice(0, TICKS)
      .map((tick) => shownTick(tick, show))
      .toReversed(),
    warning: warningOf(ledger, overlap),
  }
}

function shownTick({ at, outcome, reason, job, firedAt }: TickRecord, show: Show): Tick {
  return {
    at: at.getTime(),
    outcome,
    reason: show.text(reason),
    job: job ?? null,
    state: null,
    firedAt: firedAt.getTime(),
    tookMs: null,
  }
}

/** "Its job takes longer than the interval". */
function warningOf(ledger: readonly TickRecord[], overlap: string): string | null {
  const skipped = ledger.filter(
    ({ outcome, reason }) =>
      outcome === 'skipped' && reason !== undefined && /unfinished|running|overlap|earlier/.test(reason),
  )
  if (overlap !== 'skip' || skipped.length < SKIPPED_MIN) return null
  const [newest, before] = ledger
  const interval =
    newest === undefined || before === undefined
      ? ''
      : ` It is due every ${inWords(newest.at.getTime() - before.at.getTime())}.`
  return `${skipped.length} of the last ${ledger.length} ticks were skipped, because the job of an earlier tick was unfinished.${interval}`
}

/** One recurring job: when it runs next, and its ledger. */
export async function readRecurring(parts: Parts, id: string, cursor?: string): Promise<MakeView> {
  const { schedules } = parts.mill
  const before = cursor !== undefined && /^\d{1,16}$/.test(cursor) ? { before: new Date(Number(cursor)) } : {}
  const [record, ledger, { schedule }] = await Promise.all([
    schedules.get(id),
    schedules.ticks(id, { limit: LEDGER, ...before }),
    parts.internals.store.schedules.readSchedule(id),
  ])
  if (record === undefined || schedule === undefined) throw new ViewGone(`There is no recurring job ${id}.`)
  const jobs = await Promise.all(ledger.map(async ({ job }) => (job === undefined ? undefined : parts.mill.get(job))))
  const next = nextTimes(record, schedule)
  return (show) => ({
    fields: {
      schedule: recurringRow(record, ledger, show),
      next,
      clockNote: clockNote(record, next),
      from: ms(record.from),
      until: ms(record.until),
    } satisfies RecurringFields,
    rows: ledger.map((tick, i): readonly [string, Tick] => {
      const job = jobs[i]
      const took =
        job?.settledAt === undefined || job.startedAt === undefined
          ? null
          : job.settledAt.getTime() - job.startedAt.getTime()
      return [String(tick.at.getTime()), { ...shownTick(tick, show), state: job?.state ?? null, tookMs: took }]
    }),
    cursor: ledger.length === LEDGER ? String(ledger.at(-1)?.at.getTime()) : null,
  })
}

function nextTimes(
  record: ScheduleRecord,
  row: { readonly spec: string; readonly createdAt: number },
): readonly number[] {
  const timing = timingOf(readSpec(row.spec), row.createdAt)
  const times: number[] = []
  for (let at = record.nextAt?.getTime() ?? null; at !== null && times.length < NEXT; at = nextAfter(timing, at))
    times.push(at)
  return times
}

const HALF_YEAR_DAYS = 183
const DAY_MS = 86_400_000

/** "09:00 in Europe/Oslo is 08:00 UTC now; after the next change of its clock it is 07:00 UTC." */
function clockNote({ rule, timezone }: ScheduleRecord, [next]: readonly number[]): string | null {
  if (typeof rule !== 'string' || timezone === 'UTC' || next === undefined) return null
  const now = offsetOf(next, timezone)
  for (let day = 1; day <= HALF_YEAR_DAYS; day += 1) {
    const at = next + day * DAY_MS
    if (offsetOf(at, timezone) === now) continue
    const [local, before, after] = [
      timeIn(next, timezone),
      timeIn(next, 'UTC'),
      timeIn(next - (offsetOf(at, timezone) - now) * 60_000, 'UTC'),
    ]
    return `${local} in ${timezone} is ${before} UTC now, and ${after} UTC from ${new Date(at).toISOString().slice(0, 10)} on.`
  }
  return null
}

function timeIn(at: number, timeZone: string): string {
  return new Intl.DateTimeFormat('en-GB', { timeZone, hour: '2-digit', minute: '2-digit', hourCycle: 'h23' }).format(
    new Date(at),
  )
}

/** Minutes ahead of UTC. */
function offsetOf(at: number, timeZone: string): number {
  const parts = new Intl.DateTimeFormat('en-GB', { timeZone, timeZoneName: 'longOffset' }).formatToParts(new Date(at))
  const found = /GMT(?:([+-])(\d{2}):(\d{2}))?/.exec(parts.find(({ type }) => type === 'timeZoneName')?.value ?? '')
  if (found === null || found[1] === undefined) return 0
  return (found[1] === '-' ? -1 : 1) * (Number(found[2]) * 60 + Number(found[3]))
}

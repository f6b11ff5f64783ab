/**
 * The types that TypeScript infers for every public function. Nothing here runs: `npm run check` compiles it, and reports a line
 * under `@ts-expect-error` that compiles without an error.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import * as v from 'valibot'
import { Abort, category, codec, defaults, event, job, lazy, millrace, Snooze, sqlite } from './index.js'
import type { ErrorGroup, QueueErrors, QueueStatistics, RetryStatistics, SeriesPoint, TimeStatistics } from './index.js'
import type {
  StepRecord,
  AnyJob,
  AttemptEnd,
  AttemptRecord,
  Category,
  Codec,
  Context,
  ContextStore,
  Duration,
  EnqueueArguments,
  EnqueueCall,
  EnqueueNext,
  EnqueueOptions,
  ErrorRecord,
  FinalState,
  Handle,
  Hooks,
  Job,
  JobEdit,
  JobFilter,
  JobRecord,
  KeepOptions,
  Lazy,
  ListedJob,
  Logger,
  Mill,
  MillOptions,
  MillraceError,
  Problem,
  QueueHandle,
  ScheduleRecord,
  TickRecord,
  Upcoming,
  QueueRecord,
  RetryOptions,
  ScheduleOptions,
  SettledAttempt,
  StandardSchema,
  State,
  StoreChoice,
  TestContext,
  UniqueOptions,
  WaitingState,
  When,
} from './index.js'
import {
  CodecError,
  DefinitionError,
  DuplicateJobError,
  DuplicateKeyError,
  HookError,
  InvalidOptionsError,
  InvalidPayloadError,
  JobCancelledError,
  JobFailedError,
  JobGoneError,
  LeaseLostError,
  NotYetError,
  PayloadTooLargeError,
  ResultInHandlerError,
  StoppedError,
  StoreError,
  StoreFullError,
  TimeoutError,
  UnknownJobError,
} from './index.js'

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
/** Compiles only when the value has exactly this type. */
function expectType<Expected>() {
  return <Actual>(_value: Actual, ..._same: Equal<Actual, Expected> extends true ? [] : [never]): void => undefined
}
/** Compiles only when the two types are the same. */
type Same<_A extends true> = never

// ── Defining ────────────────────────────────────────────────────────────────────────────────────────────────────────

const sendEmail = job('send-email', async (p: { to: string }, ctx) => {
  expectType<Context>()(ctx)
  return { sent: p.to }
})
expectType<Job<{ to: string }, { sent: string }>>()(sendEmail)

const noPayload = job('no-payload', async () => 5)
const noResult = job('no-result', (_p: { n: number }) => {})
expectType<Job<{ n: number }, void>>()(noResult)
expectType<Job<undefined, number>>()(noPayload)
const synchronous = job('synchronous', (n: number) => n > 1)
expectType<Job<number, boolean>>()(synchronous)
const optional = job('optional', async (p: { n: number } | undefined) => p?.n ?? 0)
expectType<Job<{ n: number } | undefined, number>>()(optional)

const payments = category('payments', { queue: 'billing', retry: { limit: 5 }, keep: 'none', timeout: '1h' })
expectType<Category>()(payments)
const fallback = category('fallback', { run: async (p: { any: string }, ctx) => `${ctx.job} ${p.any}` })
const byCategory = job('by-category', { is: [fallback], queue: 'x' })
expectType<Job<unknown, unknown>>()(byCategory)

const full = job('full', {
  run: async (p: { card: string; tenant: string }, ctx) => {
    expectType<Context>()(ctx)
    return p.card.length
  },
  description: 'Charges a card once',
  queue: 'billing',
  is: [payments],
  priority: 3,
  retry: {
    limit: Infinity,
    backoff: 'exponential',
    jitter: 0.5,
    when: (error, attempt) => attempt < 3 && error !== null,
  },
  timeout: Infinity,
  keep: { done: '1d', failed: Infinity, cancelled: 0 },
  treatAsDone: (error) => error instanceof RangeError,
  labels: ['a'],
  codec: codec(),
  accepts: (p) => p.card !== '',
  title: (p) => `charge ${p.card}`,
})
expectType<Job<{ card: string; tenant: string }, number>>()(full)

const heavy = job('heavy', { run: lazy(async () => ({ run: async (p: { card: string }) => p.card.length })) })
expectType<Job<{ card: string }, number>>()(heavy)
expectType<Lazy<{ n: number }, string>>()(lazy(async () => ({ default: (p: { n: number }) => String(p.n) })))
expectType<Lazy<{ n: number }, string>>()(lazy(async () => (p: { n: number }) => String(p.n)))

const dated = v.pipe(
  v.object({ at: v.string() }),
  v.transform((p) => ({ at: new Date(p.at) })),
)
declare const byHand: StandardSchema<{ a: string }, { b: number }>
const withValibot = job('with-valibot', { input: dated, run: async (p) => p.at.getTime() })
const withSchema = job('with-schema', { input: byHand, queue: 'x', run: (p) => p.b > 1 })
// `enqueue` takes the schema's input, which is stored; `run` gets its output.
expectType<Job<{ at: string }, number>>()(withValibot)
expectType<Job<{ a: string }, boolean>>()(withSchema)

// @ts-expect-error a typo in the options
job('typo', { run: async () => 1, qeue: 'x' })
// @ts-expect-error a queue is text
job('wrong', { run: async () => 1, queue: 5 })
// @ts-expect-error the handler is missing, and there is no category that could have one
job('nothing', {})
// @ts-expect-error categories come in an array
job('wrong-is', { run: async () => 1, is: payments })
// @ts-expect-error a job is no category
job('wrong-is', { run: async () => 1, is: [sendEmail] })
// @ts-expect-error a name is text
job(5, async () => 1)
// @ts-expect-error a month's length varies
job('wrong-timeout', { run: async () => 1, timeout: '1M' })
// @ts-expect-error there is no such backoff
job('wrong-backoff', { run: async () => 1, retry: { backoff: 'linear' } })
// @ts-expect-error there is no such state to keep
job('wrong-keep', { run: async () => 1, keep: { doen: '1d' } })
// @ts-expect-error a category has no schema
category('wrong', { input: byHand })

// ── Durations and moments ───────────────────────────────────────────────────────────────────────────────────────────

const durations: Duration[] = [0, 1500, '5s', '500ms', '1h30m', '1d12h30m', '1.5h', '2w', 'PT5M', 'P1DT12H', 'P2W']
const fields: Duration[] = [{ hours: 1 }, { minutes: 5, seconds: 30 }]
const moments: When[] = ['1h', 5, new Date(), '2026-11-01T08:00:00Z', { epochMilliseconds: 5 }, { days: 1 }]
// @ts-expect-error a word is no unit
const words: Duration = '5 minutes'
// @ts-expect-error M would be months
const months: Duration = '1M'
// @ts-expect-error a number without a unit is a number
const unitless: Duration = '5'
// @ts-expect-error months vary
const isoMonths: Duration = 'P1M'
// @ts-expect-error years vary
const isoYears: Duration = 'P1Y'
// @ts-expect-error months vary
const monthFields: Duration = { months: 1 }
// @ts-expect-error a Date is no duration
const dateAsDuration: Duration = new Date()
// @ts-expect-error a day begins at another instant in each zone
const dayOnly: When = '2026-11-01'
export const dates = [
  durations,
  fields,
  moments,
  words,
  months,
  unitless,
  isoMonths,
  isoYears,
  monthFields,
  dateAsDuration,
  dayOnly,
]

// ── The app ─────────────────────────────────────────────────────────────────────────────────────────────────────────

const options: MillOptions = {
  store: sqlite('app.db', { durability: 'process' }),
  jobs: { sendEmail, full },
  unknown: async (payload: unknown, ctx: Context) => [payload, ctx.job],
  codec: codec({ without: ['URL'] }),
  concurrency: 5,
  queues: { mail: 5, billing: { concurrency: 2 } },
  poll: '1s',
  lease: 15_000,
  crashBudget: 3,
  retry: { limit: 3 },
  timeout: Infinity,
  slowAfter: '1m',
  keep: 'none',
  autoMigrate: false,
  logger: 'warn',
}
/** Public option types allow undefined. */
const undefinedOptions: MillOptions = {
  store: undefined,
  jobs: undefined,
  concurrency: undefined,
  retry: { limit: undefined, backoff: undefined, when: undefined },
  keep: { done: undefined },
  logger: undefined,
}
// @ts-expect-error a typo
const typo: MillOptions = { concurency: 5 }
// @ts-expect-error there is no such level
const wrongLevel: MillOptions = { logger: 'loud' }
// @ts-expect-error '5 seconds' is no duration
const wrongPoll: MillOptions = { poll: '5 seconds' }
// @ts-expect-error a number of handlers is a number
const wrongConcurrency: MillOptions = { concurrency: '5' }
// @ts-expect-error there is no such durability
sqlite('app.db', { durability: 'none' })
expectType<StoreChoice>()(sqlite(':memory:'))
expectType<10>()(defaults.concurrency)
expectType<'15s'>()(defaults.lease)

export async function theApp(): Promise<void> {
  expectType<Mill>()(await millrace())
  expectType<Mill>()(await millrace(options))
  await millrace(undefinedOptions)
  await millrace(typo)
  await millrace(wrongLevel)
  await millrace(wrongPoll)
  await millrace(wrongConcurrency)
  await millrace({ jobs: [sendEmail, full, byCategory, heavy], logger: false })
  const logger: Logger = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} }
  await using mill = await millrace({ jobs: import.meta, logger })
  await mill.start()
  await mill.stop()
  await mill.stop({ deadline: '30s' })
  await mill.stop({ deadline: 500 })
  await mill.close({ deadline: 'PT5S' })
  // @ts-expect-error a deadline is a duration
  await mill.stop({ deadline: 'soon' })
  // @ts-expect-error the deadline is in an object
  await mill.stop('30s')
  mill.configure({ concurrency: 3, queues: { mail: 1 } })
  // @ts-expect-error a typo
  mill.configure({ concurrrency: 3 })
  mill.register(sendEmail)
  mill.register(byCategory)
  // @ts-expect-error a category is no job
  mill.register(payments)
  expectType<readonly ListedJob[]>()(mill.jobs())
  expectType<AnyJob>()((mill.jobs()[0] as ListedJob).job)
  expectType<boolean>()(mill.has('x'))
  expectType<unknown>()(await mill.run('send-email', { to: 'a' }))
}

// ── Enqueueing ──────────────────────────────────────────────────────────────────────────────────────────────────────

export async function enqueueing(mill: Mill): Promise<void> {
  const handle = await mill.enqueue(sendEmail, { to: 'a@b.c' }, { labels: ['welcome'] })
  expectType<Handle<{ sent: string }, { to: string }>>()(handle)
  expectType<{ sent: string }>()(await handle.result({ timeout: '1m' }))
  expectType<string>()(handle.id)
  expectType<boolean>()(handle.isNew)
  expectType<JobRecord<{ to: string }, { sent: string }> | undefined>()(await handle.get())
  expectType<{ to: string } | undefined>()((await handle.get())?.payload)
  expectType<{ sent: string } | undefined>()((await handle.get())?.result)
  expectType<boolean>()(await handle.cancel())

  expectType<Handle<number, undefined>>()(await mill.enqueue(noPayload))
  expectType<Handle<number, undefined>>()(await mill.enqueue(noPayload, undefined, { in: '5s' }))
  expectType<Handle<void, { n: number }>>()(await mill.enqueue(noResult, { n: 1 }))
  expectType<Handle<number, { n: number } | undefined>>()(await mill.enqueue(optional))
  expectType<Handle<number, { n: number } | undefined>>()(await mill.enqueue(optional, { n: 1 }))
  expectType<Handle<number, { card: string }>>()(await mill.enqueue(heavy, { card: 'x' }))
  expectType<Handle<unknown>>()(await mill.enqueue(byCategory, { any: 'thing' }))
  expectType<Handle<unknown>>()(await mill.enqueue('by-name', { any: 'thing' }, { queue: 'x' }))
  expectType<Handle<unknown>>()(await mill.enqueue('by-name'))

  // @ts-expect-error the payload is missing
  await mill.enqueue(sendEmail)
  // @ts-expect-error the payload is not what the handler takes
  await mill.enqueue(sendEmail, { to: 5 })
  // @ts-expect-error the payload lacks a field
  await mill.enqueue(sendEmail, {})
  // @ts-expect-error the payload has a field too many
  await mill.enqueue(sendEmail, { to: 'a', cc: 'b' })
  // @ts-expect-error a job without payload takes none
  await mill.enqueue(noPayload, { to: 'a' })
  // @ts-expect-error a typo in the options
  await mill.enqueue(sendEmail, { to: 'a' }, { lables: [] })
  // @ts-expect-error a priority is a number
  await mill.enqueue(sendEmail, { to: 'a' }, { priority: 'high' })
  // @ts-expect-error there is no such policy
  await mill.enqueue(sendEmail, { to: 'a' }, { key: 'k', onDuplicate: 'ignore' })
  // @ts-expect-error functions cannot be stored with a job
  await mill.enqueue(sendEmail, { to: 'a' }, { retry: { when: () => true } })
  // @ts-expect-error '5 minutes' is no duration
  await mill.enqueue(sendEmail, { to: 'a' }, { in: '5 minutes' })
  // @ts-expect-error an instant is given with at
  await mill.enqueue(sendEmail, { to: 'a' }, { in: new Date() })
  // @ts-expect-error neither a job nor a name
  await mill.enqueue(5)
  // @ts-expect-error a category is no job
  await mill.enqueue(payments)

  const approved = event<{ by: string }>('approved')
  const poked = event('poked')
  expectType<boolean>()(await mill.send('id', approved, { by: 'ann' }, { id: 'click-1', tx: {} }))
  expectType<boolean>()(await mill.send(handle, poked))
  await mill.send([sendEmail, 'k'], poked, undefined, { id: 'x' })
  await mill.send('id', 'approved', { any: 'thing' })
  // @ts-expect-error the payload is missing
  await mill.send('id', approved)
  // @ts-expect-error the payload is not that of the event
  await mill.send('id', approved, { by: 5 })
  // @ts-expect-error a typo in the options
  await mill.send('id', approved, { by: 'ann' }, { ids: 'x' })
  // @ts-expect-error a key belongs to a job
  await mill.send([sendEmail], poked)
  // @ts-expect-error an event has no number
  await mill.send('id', 5)

  const steps = await mill.steps('id', { after: '/step:a#0', limit: 10 })
  expectType<StepRecord[]>()(steps)
  expectType<'done' | 'failed' | 'open' | 'retrying' | undefined>()(steps[0]?.state)
  expectType<unknown>()(steps[0]?.result)
  // @ts-expect-error a typo in the options
  await mill.steps('id', { limits: 10 })
  expectType<boolean>()(await mill.cancel('id', { unwind: false, reason: 'x' }))
  expectType<boolean>()(await mill.retry('id', { fresh: true }))
  // @ts-expect-error fresh is an option of retry
  await mill.cancel('id', { fresh: true })

  expectType<Handle<{ sent: string }, { to: string }>[]>()(
    await mill.enqueueMany(sendEmail, [{ to: 'a' }, { to: 'b' }]),
  )
  await mill.enqueueMany(sendEmail, [{ to: 'a' }], { queue: 'x' })
  await mill.enqueueMany(sendEmail, [{ to: 'a' }], (p, i) => {
    expectType<{ to: string }>()(p)
    expectType<number>()(i)
    return { priority: i % 2 }
  })
  expectType<Handle<unknown>[]>()(await mill.enqueueMany('by-name', [1, 2], (p, i) => ({ title: `${String(p)} ${i}` })))
  // @ts-expect-error the payload is wrong for the only item
  await mill.enqueueMany(sendEmail, [{ too: 'b' }])
  // @ts-expect-error the second one is wrong
  await mill.enqueueMany(sendEmail, [{ to: 'a' }, { too: 'b' }])
  // @ts-expect-error payloads come in an array
  await mill.enqueueMany(sendEmail, { to: 'a' })

  for (const when of ['1h', new Date(), '2026-11-01T08:00:00Z', 5_000, { epochMilliseconds: 1 }, { hours: 2 }] as const)
    expectType<Handle<{ sent: string }, { to: string }>>()(await mill.schedule(sendEmail, { to: 'a' }, when))
  await mill.schedule(sendEmail, { to: 'a' }, '1h', { key: 'order-1', labels: ['x'] })
  expectType<Handle<unknown>>()(await mill.schedule('by-name', undefined, '1h'))
  expectType<boolean>()(await mill.unschedule(sendEmail, 'order-1'))
  expectType<boolean>()(await mill.unschedule('send-email', 'order-1'))
  // @ts-expect-error when is missing
  await mill.schedule(sendEmail, { to: 'a' })
  // @ts-expect-error '1M' is no duration
  await mill.schedule(sendEmail, { to: 'a' }, '1M')
  // @ts-expect-error the time is the third argument
  await mill.schedule(sendEmail, { to: 'a' }, '1h', { in: '2h' })
  // @ts-expect-error the payload is wrong
  await mill.schedule(sendEmail, { to: 5 }, '1h')
}
export type ScheduleHasNoTime = Same<Equal<Extract<keyof ScheduleOptions, 'in' | 'at'>, never>>
export const given: EnqueueOptions = {
  title: 'x',
  labels: [],
  queue: undefined,
  priority: 1,
  key: 'k',
  onDuplicate: 'replace',
  at: new Date(),
  retry: { limit: 1, backoff: { start: '1s', factor: 2, max: '1h' }, jitter: 0 },
  timeout: Infinity,
  expires: '1d',
  meta: { any: 1 },
  unique: { by: ['a', 'b.c'], for: '1m', while: 'waiting', onDuplicate: 'reschedule' },
}

// ── Unique jobs ─────────────────────────────────────────────────────────────────────────────────────────────────────

const crawl = job('crawl', {
  run: async (p: { site: string; depth: number }, ctx) => ctx.log(p.site),
  unique: { by: (p) => (expectType<{ site: string; depth: number }>()(p), p.site), for: Infinity },
})
expectType<Job<{ site: string; depth: number }, void>>()(crawl)
expectType<Job<{ site: string }, void>>()(
  job('crawl', { run: async (p: { site: string }, ctx) => ctx.log(p), unique: { by: 'site', while: 'unfinished' } }),
)
// `unique.by` takes the schema's input.
job('by-schema', { input: dated, run: async (p) => p.at.getTime(), unique: { by: (p) => p.at.toUpperCase() } })
job('none', { run: async (p: { a: 1 }) => p.a, unique: false, is: [category('c', { unique: { by: 'a' } })] })
interface Nested {
  readonly order: { readonly id: string; readonly lines: readonly { readonly sku: string }[] }
  readonly tenant?: string | { readonly id: number } | undefined
  readonly extra: unknown
}
job('nested', { run: async (p: Nested) => p.extra, unique: { by: ['order', 'order.id', 'tenant.id', 'extra.any'] } })
job('any', { run: async (p: Record<string, string>) => p['a'], unique: { by: 'whatever' } })
job('either', { run: async (p: { kind: 'a'; a: 1 } | { kind: 'b'; b: 2 }) => p, unique: { by: 'kind' } })
job('unknown', { run: async (p: unknown) => p, unique: { by: 'whatever' } })
job('of-schema', { input: dated, run: async (p) => p.at.getTime(), unique: { by: 'at' } })
// @ts-expect-error the payload has no such field
job('typo', { run: async (p: { site: string }, ctx) => ctx.log(p.site), unique: { by: 'sites' } })
// @ts-expect-error nor one of them
job('typos', { run: async (p: { site: string }, ctx) => ctx.log(p.site), unique: { by: ['site', 'depth'] } })
// @ts-expect-error a text has no fields
job('too-deep', { run: async (p: { site: string }, ctx) => ctx.log(p.site), unique: { by: 'site.id' } })
category('tenants', { unique: { by: (p: { tenant: string }) => p.tenant, onDuplicate: 'reject' } })
export const unique: UniqueOptions<{ a: { b: string } }> = { by: (p) => p.a.b, for: 5_000, onDuplicate: 'ignore' }
export async function uniquely(mill: Mill): Promise<void> {
  await mill.enqueue(crawl, { site: 'a', depth: 1 }, { unique: { onDuplicate: 'replace' } })
  await mill.enqueue(crawl, { site: 'a', depth: 1 }, { unique: { by: (p: { site: string }) => p.site } })
  await mill.schedule(crawl, { site: 'a', depth: 1 }, '1h', { unique: { by: 'site', onDuplicate: 'reschedule' } })
  await mill.enqueueMany(crawl, [{ site: 'a', depth: 1 }], (p) => ({ unique: p.depth > 1 && { by: 'site' } }))
  // @ts-expect-error there is no such policy
  await mill.enqueue(crawl, { site: 'a', depth: 1 }, { unique: { onDuplicate: 'return' } })
  // @ts-expect-error there is no such state
  await mill.enqueue(crawl, { site: 'a', depth: 1 }, { unique: { while: 'running' } })
  // @ts-expect-error a typo
  await mill.enqueue(crawl, { site: 'a', depth: 1 }, { unique: { key: 'site' } })
  // @ts-expect-error unique is an object or false
  await mill.enqueue(crawl, { site: 'a', depth: 1 }, { unique: true })
}

// ── Reading and acting ──────────────────────────────────────────────────────────────────────────────────────────────

export async function reading(mill: Mill): Promise<void> {
  expectType<JobRecord | undefined>()(await mill.get('id'))
  for await (const found of mill.find()) {
    expectType<JobRecord>()(found)
    expectType<State>()(found.state)
    expectType<string>()(found.id)
    expectType<string>()(found.job)
    expectType<string | undefined>()(found.title)
    expectType<string>()(found.queue)
    expectType<unknown>()(found.payload)
    expectType<unknown>()(found.result)
    expectType<ErrorRecord | undefined>()(found.error)
    expectType<number>()(found.attempt)
    expectType<number>()(found.crashes)
    expectType<number>()(found.priority)
    expectType<readonly string[]>()(found.labels)
    expectType<string | undefined>()(found.key)
    expectType<unknown>()(found.meta)
    expectType<Date>()(found.createdAt)
    expectType<Date>()(found.dueAt)
    expectType<Date | undefined>()(found.startedAt)
    expectType<Date | undefined>()(found.settledAt)
    expectType<readonly AttemptRecord[]>()(found.attempts)
    expectType<Date | undefined>()(found.attempts[0]?.startedAt)
    // @ts-expect-error a record is read, not written
    found.state = 'done'
  }
  const filter: JobFilter = {
    job: [sendEmail, 'name', payments],
    queue: ['a', 'b'],
    state: ['ready', 'failed'],
    label: 'x',
    key: 'k',
    createdAfter: new Date(),
    order: 'oldest',
    limit: 5,
  }
  expectType<AsyncIterableIterator<JobRecord>>()(mill.find(filter))
  const bySent = mill.find({ job: sendEmail, state: 'done' })
  expectType<AsyncIterableIterator<JobRecord<{ to: string }, { sent: string }>>>()(bySent)
  for await (const found of mill.find({ job: [sendEmail, noPayload] }))
    expectType<{ sent: string } | number | undefined>()(found.result)
  expectType<AsyncIterableIterator<JobRecord>>()(mill.find({ job: payments, queue: 'billing' }))
  expectType<AsyncIterableIterator<JobRecord>>()(mill.find({ job: ['send-email', 'other'] }))
  expectType<AsyncIterableIterator<JobRecord<{ at: string }, number>>>()(mill.find({ job: withValibot }))
  // @ts-expect-error a number is no job
  mill.find({ job: 5 })
  // @ts-expect-error a typo beside a job
  mill.find({ job: sendEmail, sate: 'ready' })
  // @ts-expect-error there is no such state
  mill.find({ state: 'sleeping' })
  // @ts-expect-error a typo
  mill.find({ sate: 'ready' })
  expectType<Handle<unknown>>()(mill.handle('id'))
  expectType<boolean>()(await mill.retry('id'))
  expectType<boolean>()(await mill.cancel('id'))
  expectType<boolean>()(await mill.pause('id'))
  expectType<boolean>()(await mill.resume('id'))
  const mail = mill.queue('mail')
  expectType<QueueHandle>()(mail)
  expectType<void>()(await mail.pause())
  expectType<void>()(await mail.resume())
  for (const when of ['1h', 5, new Date(), { minutes: 5 }, '2026-11-01T08:00:00Z'] as const)
    expectType<void>()(await mail.pauseUntil(when))
  expectType<QueueRecord>()(await mail.get())
  expectType<boolean>()((await mail.get()).paused)
  expectType<Date | undefined>()((await mail.get()).pausedUntil)
  // @ts-expect-error a pause needs a time
  await mail.pauseUntil()
  // @ts-expect-error an hour is no time
  await mail.pauseUntil('an hour')
  expectType<boolean>()(await mill.delete('id'))
  const edit: JobEdit = { payload: 1, title: 'x', in: '5m', retry: { limit: 1 }, priority: 2, queue: 'q', meta: 1 }
  expectType<boolean>()(await mill.edit('id', edit))
  // @ts-expect-error a key cannot be edited
  await mill.edit('id', { key: 'k' })
  // @ts-expect-error an id is text: pass handle.id
  await mill.get(mill.handle('id'))
}
export type States = Same<Equal<State, WaitingState | 'running' | FinalState>>

// ── Inside a handler, and in its tests ────────────────────────────────────────────────────────────────────────────────

export const inside = job('inside', async (_: undefined, ctx) => {
  expectType<string>()(ctx.id)
  expectType<string>()(ctx.job)
  expectType<number>()(ctx.attempt)
  expectType<AbortSignal>()(ctx.signal)
  expectType<string>()(ctx.queue.name)
  expectType<Promise<void>>()(ctx.queue.pauseUntil(new Date()))
  ctx.log('any', { number: 1 }, 5n)
  ctx.progress(1)
  ctx.progress(1, 2)
  expectType<Handle<{ sent: string }, { to: string }>>()(await ctx.enqueue(sendEmail, { to: 'a' }, { key: 'k' }))
  expectType<Handle<unknown>>()(await ctx.enqueue('by-name', 1))
  expectType<Handle<number, undefined>>()(await ctx.enqueue(noPayload))
  // @ts-expect-error progress takes numbers
  ctx.progress('half')
  // @ts-expect-error a context is read, not written
  ctx.attempt = 5
  if (ctx.attempt > 3) throw new Abort('enough', { cause: new Error('x') })
  if (ctx.attempt > 2) throw new Snooze('10m')
  if (ctx.attempt > 1) throw new Snooze(new Date())
  // @ts-expect-error a snooze takes a duration or an instant
  throw new Snooze('later')
})

export const parent = job('parent', async (_: undefined, ctx) => {
  expectType<{ sent: string }[]>()(await ctx.results(sendEmail))
  await ctx.settleIn({}, 1)
  expectType<number>()(await ctx.transaction(() => 5))
  expectType<string>()(await ctx.transaction((tx: { exec(sql: string): void }) => (tx.exec('delete from t'), 'x')))
  expectType<Promise<void> | void>()(ctx.settleIn({}))
  await ctx.enqueue(sendEmail, { to: 'a' }, { tx: {} })
})

export async function directly(ctx: TestContext): Promise<void> {
  expectType<{ sent: string }>()(await sendEmail.run({ to: 'a' }))
  expectType<{ sent: string }>()(await sendEmail.run({ to: 'a' }, ctx))
  expectType<readonly string[]>()(ctx.logged)
  // @ts-expect-error the payload is wrong
  await sendEmail.run({ to: 5 })
}

// ── Recurring jobs ──────────────────────────────────────────────────────────────────────────────────────────────────

export async function recurring(mill: Mill, ctx: TestContext): Promise<void> {
  const daily = { timezone: 'Europe/Oslo', missed: 'all', overlap: 'skip', jitter: '5m', labels: ['mail'] } as const
  expectType<ScheduleRecord>()(await mill.recurring('daily', sendEmail, { to: 'a' }, '0 9 * * *', daily))
  expectType<ScheduleRecord>()(await mill.recurring('often', 'digest', {}, { every: '5m' }))
  // @ts-expect-error the payload is wrong
  await mill.recurring('daily', sendEmail, { to: 5 }, '0 9 * * *')
  // @ts-expect-error the rule is missing
  await mill.recurring('daily', sendEmail, { to: 'a' }, '0 9 * * *', { in: '5m' })
  // @ts-expect-error there is no such policy
  await mill.recurring('daily', sendEmail, { to: 'a' }, '0 9 * * *', { missed: 'none' })
  expectType<boolean>()(await mill.deleteRecurring('daily'))
  expectType<ScheduleRecord[]>()(await mill.schedules.list({ limit: 10 }))
  expectType<ScheduleRecord | undefined>()(await mill.schedules.get('daily'))
  expectType<boolean>()(await mill.schedules.pause('daily'))
  expectType<boolean>()(await mill.schedules.resume('daily'))
  expectType<Handle<unknown> | undefined>()(await mill.schedules.runNow('daily'))
  expectType<number>()(await mill.schedules.backfill('daily', new Date(0), '2026-11-01T08:00:00Z'))
  expectType<TickRecord[]>()(await mill.schedules.ticks('daily', { before: new Date() }))
  expectType<Upcoming[]>()(await mill.upcoming('24h', { limit: 5 }))
  expectType<{ readonly schedule: string; readonly at: Date } | undefined>()(ctx.tick)
}

// ── Jobs after others ───────────────────────────────────────────────────────────────────────────────────────────────

export async function dependencies(mill: Mill): Promise<void> {
  const count = job('count', (p: { file: string }) => p.file.length)
  const total = job('total', async (_: undefined, ctx) => {
    expectType<number[]>()(await ctx.results(count))
    expectType<unknown[]>()(await ctx.results('count'))
    return (await ctx.results(count)).length
  })
  job('keyed', {
    run: (p: { order: string }) => p.order,
    after: (p) => [[count, p.order], p.order],
    onParentFailure: 'run',
  })
  // @ts-expect-error: the payload has no such field.
  job('keyed', { run: (p: { order: string }) => p.order, after: (p) => [[count, p.oder]] })
  // @ts-expect-error: no such policy.
  category('careless', { onParentFailure: 'ignore' })

  const handle = await mill.enqueue(count, { file: 'a' })
  await mill.enqueue(total, undefined, {
    after: [handle, handle.id, [count, 'k'], ['count', 'k']],
    onParentFailure: 'cancel',
  })
  // @ts-expect-error: a key without its job names no parent.
  await mill.enqueue(total, undefined, { after: [['k']] })
  await mill.edit(handle.id, { after: [handle] })

  const one = await mill.flow((f) => f.add(total, undefined, { after: [f.add(count, { file: 'a' })] }))
  expectType<Handle<number, undefined>>()(one)
  const many = await mill.flow((f) => {
    const parts = ['a', 'b'].map((file) => f.add(count, { file }))
    return { parts, sum: f.add(total).after(...parts), pair: [f.add('any', 1), f.add(count, { file: 'c' })] as const }
  })
  expectType<Handle<number, { file: string }>[]>()(many.parts)
  expectType<Handle<number, undefined>>()(many.sum)
  expectType<readonly [Handle<unknown>, Handle<number, { file: string }>]>()(many.pair)
  const all = await mill.flow((f) => {
    f.add(count, { file: 'a' })
  })
  expectType<Handle<unknown>[]>()(all)
  // @ts-expect-error: the payload is missing.
  await mill.flow((f) => f.add(count))
  // @ts-expect-error: the transaction is the whole flow's.
  await mill.flow((f) => f.add(count, { file: 'a' }, { tx: {} }))
  await mill.flow((f) => f.add(count, { file: 'a' }), { tx: {} })
}

// ── Groups ──────────────────────────────────────────────────────────────────────────────────────────────────────────

export async function sequences(mill: Mill): Promise<void> {
  const sequence = await mill.sequence(sendEmail, [{ to: 'a' }], { key: 'k', start: false, retry: { limit: 2 } })
  // @ts-expect-error an item must fit the job
  await mill.sequence(sendEmail, [{ to: 5 }])
  // @ts-expect-error a sequence has no time of its own
  await mill.sequence(sendEmail, [{ to: 'a' }], { in: '1h' })
  // @ts-expect-error nor parents
  await mill.sequence(sendEmail, [{ to: 'a' }], { after: ['x'] })
  await mill.sequence('by-name', [{ anything: 1 }])
  expectType<boolean>()(await sequence.pause())
  const { state, done, requested, error, item } = await sequence.progress()
  expectType<'waiting' | 'running' | 'paused' | 'done' | 'failed' | 'cancelled'>()(state)
  expectType<number>()(done)
  expectType<'pause' | 'cancel' | undefined>()(requested)
  expectType<number | undefined>()(error?.index)
  expectType<number | undefined>()(item?.total)
  expectType<{ done: number; total: number }>()(await sequence.result({ timeout: '1m' }))
  for (const { index, log } of await sequence.output({ from: 0, limit: 10 })) {
    expectType<number>()(index)
    expectType<readonly string[]>()(log)
  }
  expectType<boolean>()(await mill.sequence([sendEmail, 'k']).resume())
  expectType<string>()(mill.sequence('0192').id)
  job('item', async (p: { to: string }, ctx) => `${p.to} ${ctx.sequence?.index}`)
}

export async function groups(mill: Mill): Promise<void> {
  const group = mill.group('spring', { whenDone: [sendEmail, { to: 'a' }, { queue: 'reports' }] })
  mill.group('spring')
  mill.group('spring', { whenDone: ['by-name', { anything: 1 }] })
  // @ts-expect-error the payload is wrong
  mill.group('spring', { whenDone: [sendEmail, { to: 5 }] })
  // @ts-expect-error the payload is missing
  mill.group('spring', { whenDone: [sendEmail] })
  // @ts-expect-error an unknown option
  mill.group('spring', { whenDne: [sendEmail, { to: 'a' }] })
  const progress = await group.progress({ queue: 'mail' })
  expectType<number>()(progress.unfinished)
  expectType<number | undefined>()(progress.queues['mail']?.done)
  expectType<boolean>()(await group.seal({ tx: {} }))
  expectType<number>()(await group.retryFailed())
  for await (const record of mill.find({ group: 'spring' })) expectType<string | undefined>()(record.group)
}

// ── Wrappers of an app's own ────────────────────────────────────────────────────────────────────────────────────────

/** A wrapper may take a job or a name, and pass its arguments on with their types. */
export async function wrapped(mill: Mill, either: AnyJob | string): Promise<void> {
  expectType<Handle<unknown>>()(await mill.enqueue(either, { any: 'thing' }))
  const logged = <Payload, Result>(one: Job<Payload, Result>, ...rest: EnqueueArguments<Payload>) =>
    mill.enqueue(one, ...rest)
  expectType<Handle<{ sent: string }, { to: string }>>()(await logged(sendEmail, { to: 'a' }))
  // @ts-expect-error the payload is wrong
  await logged(sendEmail, { to: 5 })
}

// ── Context and hooks ───────────────────────────────────────────────────────────────────────────────────────────────

const tenant = new AsyncLocalStorage<{ id: number }>()
const view: ContextStore = {
  getStore: () => tenant.getStore()?.id,
  run: (id: number | undefined, call) => tenant.run({ id: id ?? 0 }, call),
}
export const captures: readonly MillOptions[] = [
  { capture: { tenant, view } },
  { capture: { tenant, trace: false } },
  { capture: false },
  { capture: {} },
  // @ts-expect-error the store has no getStore and no run
  { capture: { tenant: 'acme' } },
  // @ts-expect-error the stores have names
  { capture: true },
]
export const hooks: Hooks = {
  enqueue: async (call, next) => {
    expectType<EnqueueCall>()(call)
    expectType<EnqueueNext>()(next)
    expectType<unknown>()(call.items[0]?.payload)
    expectType<Handle<unknown>[]>()(await next({ labels: ['a'] }))
    await next((item, index) => ({ ...item.options, priority: index }))
    // @ts-expect-error a typo in the overriding options
    return next({ lables: ['a'] })
  },
  start: async (ctx, next) => {
    expectType<Context>()(ctx)
    expectType<unknown>()(await next())
  },
  settle: (attempt, end) => {
    expectType<SettledAttempt>()(attempt)
    expectType<AttemptEnd>()(end)
    expectType<State>()(end.state)
    expectType<number | undefined>()(end.ms)
    expectType<ErrorRecord | undefined>()(end.error)
  },
}
export const hooked: readonly MillOptions[] = [
  { hooks },
  { hooks: [hooks, {}] },
  // @ts-expect-error a typo
  { hooks: { strat: () => undefined } },
]
declare const shown: JobRecord
expectType<Readonly<Record<string, unknown>>>()(shown.captured)
expectType<{ readonly trace: true }>()(defaults.capture)

// ── Codecs and errors ───────────────────────────────────────────────────────────────────────────────────────────────

class Money {
  cents = 0
}
expectType<Codec>()(
  codec({
    types: {
      money: {
        is: (value: unknown): value is Money => value instanceof Money,
        write: (money) => money.cents,
        read: (cents) => Object.assign(new Money(), { cents: Number(cents) }),
      },
    },
  }),
)
// @ts-expect-error there is no such type to leave out
codec({ without: ['Data'] })
export const keep: KeepOptions = { done: '1d', failed: Infinity }
export const keepOneTime: readonly KeepOptions[] = ['1d', 5_000, Infinity, 'none']
// @ts-expect-error not a duration
export const keepWrong: KeepOptions = 'for ever'
export const retry: RetryOptions = { backoff: (n, error) => (error instanceof Error ? '1s' : n * 1_000) }

export function problemsOf(error: InvalidOptionsError | InvalidPayloadError): readonly Problem[] {
  expectType<string>()(error.code)
  return error.problems
}
expectType<string | undefined>()(new DuplicateJobError('job', 'value', 'id', 'why').existingId)
expectType<string | undefined>()(new DuplicateKeyError('job', 'key', 'id', 'why').existingId)
expectType<number>()(new PayloadTooLargeError('job', 2, 1).bytes)
expectType<string>()(new JobFailedError('id', 'job', 'no', undefined).jobId)
export const errors: readonly (new (...args: never[]) => MillraceError)[] = [
  CodecError,
  DefinitionError,
  DuplicateJobError,
  DuplicateKeyError,
  HookError,
  InvalidOptionsError,
  InvalidPayloadError,
  JobCancelledError,
  JobFailedError,
  JobGoneError,
  LeaseLostError,
  NotYetError,
  PayloadTooLargeError,
  ResultInHandlerError,
  StoppedError,
  StoreError,
  StoreFullError,
  TimeoutError,
  UnknownJobError,
]

// A handler in a module: the payload comes from the schema, or is written out.
export const rendered = job<{ page: number }, string>('render', {
  executor: 'process',
  module: new URL('./render.js', import.meta.url),
  memoryMb: 256,
})
expectType<Job<{ page: number }, string>>()(rendered)
export const checkedRender = job('render', {
  executor: 'thread',
  module: new URL('./render.js', import.meta.url),
  input: {} as StandardSchema<{ page: string }, { page: number }>,
})
expectType<Job<{ page: string }, void>>()(checkedRender)
// @ts-expect-error -- a thread cannot be given a closure
job('closure', { executor: 'thread', module: new URL('./render.js', import.meta.url), run: () => 1 })

// ── Statistics ──────────────────────────────────────────────────────────────────────────────────────────────────

export async function statistics(mill: Mill): Promise<void> {
  expectType<Record<string, QueueStatistics>>()(await mill.stats.queues())
  expectType<Record<string, RetryStatistics>>()(await mill.stats.retries({ days: Infinity, queue: 'mail' }))
  expectType<Record<string, TimeStatistics>>()(await mill.stats.waitTimes({ unit: 's', job: 'send' }))
  expectType<SeriesPoint[]>()(await mill.stats.series({ from: new Date(), bucket: '5m' }))
  expectType<QueueErrors>()(await mill.stats.errors('mail'))
  expectType<readonly ErrorGroup[]>()((await mill.stats.errorGroups({ limit: 5 })).rows)
  // @ts-expect-error says "'sec' is not assignable"
  await mill.stats.processingTimes({ unit: 'sec' })
}

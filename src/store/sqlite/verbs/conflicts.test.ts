import fc from 'fast-check'
import { expect, test } from 'vitest'
import { MillraceError } from '../../../errors.js'
import type { State } from '../../../job/rules/states.js'
import type { UniqueSlotRequest, UniquePolicy, UniqueWhile } from '../../../job/rules/unique.js'
import type { Ids } from '../../../world/ids.js'
import { systemWorld } from '../../../world/world.js'
import type { ClaimedJob, SettledJob } from '../../store.js'
import { openFile } from '../connection/open.js'
import { SqliteStore } from '../sqlite-store.js'

/**
 * Random enqueues, claims, ends, commands and prunings, compared with a plain model of unique slots, and shrunk when
 * they disagree. The model is a list of jobs, a map of slots and the rules a user would write down; it knows nothing of
 * tables.
 */
interface ModelJob {
  readonly id: string
  readonly key: string
  whilst: UniqueWhile
  payload: string
  state: State | 'gone'
  claim: ClaimedJob | null
  dueAt: number
  keepUntil: number
}

interface Model {
  readonly jobs: ModelJob[]
  /** `until` is 0 when there is no window. */
  readonly slots: Map<string, { id: string; until: number }>
}

interface Real {
  readonly store: SqliteStore
  readonly clock: { now: number }
  readonly ids: Ids
}

const isOver = (job: ModelJob): boolean => ['done', 'failed', 'cancelled', 'gone'].includes(job.state)
const isWaiting = (job: ModelJob): boolean => !isOver(job) && job.claim === null

type Step = fc.AsyncCommand<Model, Real>
function step(name: string, run: (model: Model, real: Real) => Promise<void>): Step {
  return {
    check: () => true,
    toString: () => name,
    run: async (model, real) => {
      await run(model, real)
      await agree(model, real)
    },
  }
}

async function agree(model: Model, real: Real): Promise<void> {
  const rows = await real.store.readJobs(model.jobs.map((job) => job.id))
  const found = rows.map((row) => (row === undefined ? ['gone'] : [row.state, row.claimed, row.payload, row.dueAt]))
  const expected = model.jobs.map((job) =>
    job.state === 'gone' ? ['gone'] : [job.state, job.claim !== null, job.payload, job.dueAt],
  )
  expect(found).toEqual(expected)
  // If only 'unfinished' was ever requested, there is at most one unfinished job, whatever the policies.
  expect(model.jobs.filter((job) => job.key === 'strict' && !isOver(job)).length).toBeLessThanOrEqual(1)
}

interface Request {
  readonly key: string
  readonly whilst: UniqueWhile
  readonly policy: UniquePolicy
  readonly forMs: number | null
  readonly delay: number
}

const enqueue = (request: Request): Step =>
  step(`enqueue(${JSON.stringify(request)})`, async (model, real) => {
    const id = real.ids.jobId(real.clock.now)
    const payload = JSON.stringify(id)
    const answer = await insert(real, request, id, payload)
    expect(answer).toBe(expectedAnswer(model, request, id, payload, real.clock.now))
  })

/** 'new', the id of the existing job, or the code of the refusal. */
async function insert(real: Real, request: Request, id: string, payload: string): Promise<unknown> {
  const { key, whilst, policy, forMs, delay } = request
  const unique: UniqueSlotRequest = { key, while: whilst, onDuplicate: policy, forMs }
  const row = {
    id,
    name: 'work',
    queue: 'default',
    priority: 0,
    key: null,
    unique,
    payload,
    options: JSON.stringify({ unique: { key, while: whilst } }),
    due: { inMs: delay },
    expires: null,
  }
  const inserting = real.store.insertJobs([row], { onDuplicate: 'return', keepCancelledMs: Infinity })
  return inserting.then(
    ([one]) => (one?.isNew === true ? 'new' : one?.id),
    (error: unknown) => (error instanceof MillraceError ? error.code : error),
  )
}

function expectedAnswer(model: Model, request: Request, id: string, payload: string, now: number): string {
  const slot = model.slots.get(request.key)
  const holder = model.jobs.find((job) => job.id === slot?.id)
  const inTheWay =
    holder !== undefined && !isOver(holder) && (request.whilst === 'unfinished' || isWaiting(holder))
      ? holder
      : undefined
  const window = slot !== undefined && slot.until > now ? slot.until : undefined
  let until = request.forMs === null ? 0 : now + request.forMs
  if (request.policy === 'reschedule') {
    if (inTheWay !== undefined) return putOff(inTheWay, request, payload, slot?.until ?? 0, now)
  } else if (inTheWay !== undefined || window !== undefined) {
    if (request.policy === 'ignore') return slot?.id ?? 'none'
    if (request.policy === 'reject' || holder === undefined || !isWaiting(holder)) return 'E_DUPLICATE_JOB'
    Object.assign(holder, { state: 'cancelled' })
    until = window ?? until
  }
  model.slots.set(request.key, { id, until })
  const dueAt = dueOf(request, request.policy === 'reschedule' ? until : 0, now)
  const state = dueAt > now ? 'scheduled' : 'ready'
  model.jobs.push({
    id,
    key: request.key,
    whilst: request.whilst,
    payload,
    state,
    claim: null,
    dueAt,
    keepUntil: Infinity,
  })
  return 'new'
}

function putOff(holder: ModelJob, request: Request, payload: string, until: number, now: number): string {
  if (!isWaiting(holder)) return 'E_DUPLICATE_JOB'
  const dueAt = dueOf(request, until, now)
  const state = dueAt > now ? 'scheduled' : 'ready'
  Object.assign(holder, { whilst: request.whilst, payload, dueAt, state })
  return holder.id
}

const dueOf = (request: Request, until: number, now: number): number =>
  until === 0 ? now + request.delay : Math.min(until, now + request.delay)

const advance = (ms: number): Step =>
  step(`advance(${ms})`, async (model, real) => {
    real.clock.now += ms
    await real.store.promoteJobs(1_000)
    for (const job of model.jobs)
      if ((job.state === 'scheduled' || job.state === 'retrying') && job.dueAt <= real.clock.now) job.state = 'ready'
  })

const claim = (starting: number): Step =>
  step(`claim(${starting === 0 ? 'held' : 'running'})`, async (model, real) => {
    const request = { worker: 'w', fence: real.ids.fence(), names: undefined, max: 1, starting, rooms: new Map() }
    const { jobs } = await real.store.claimJobs({ ...request, suspects: 'none' })
    const free = model.jobs.filter((job) => job.state === 'ready' && job.claim === null)
    expect(jobs.length).toBe(Math.min(1, free.length))
    const taken = free.find((job) => job.id === jobs[0]?.id)
    expect(taken?.id).toBe(jobs[0]?.id)
    if (taken !== undefined) Object.assign(taken, { claim: jobs[0], state: starting === 0 ? 'ready' : 'running' })
  })

const settle = (at: number, to: State, keepMs: number): Step =>
  step(`settle(${at}, ${to}, keep ${keepMs})`, async (model, real) => {
    const claimed = model.jobs.filter((job) => job.claim !== null)
    const job = claimed[at % Math.max(1, claimed.length)]
    if (job === undefined || job.claim === null) return
    const delayMs = to === 'retrying' ? 500 : null
    const written = await real.store.settleJobs([settlement(job.claim, to, delayMs, keepMs)], [job.claim.fence])
    expect(written).toEqual({ refused: [], changed: [] })
    Object.assign(job, { claim: null, state: to, dueAt: delayMs === null ? job.dueAt : real.clock.now + delayMs })
    if (isOver(job)) end(model, job, keepMs, real.clock.now)
  })

/** A cancelled job releases its slot at once; a job that is kept for no time is deleted. */
function end(model: Model, job: ModelJob, keepMs: number, now: number): void {
  const makesWay = job.state === 'cancelled' || job.state === 'gone'
  if (makesWay && model.slots.get(job.key)?.id === job.id) model.slots.delete(job.key)
  if (keepMs === 0) job.state = 'gone'
  job.keepUntil = now + keepMs
}

function settlement(claimed: ClaimedJob, to: State, delayMs: number | null, keepMs: number): SettledJob {
  const nothing = { startedAt: null, hasBegun: true, result: null, error: null, reason: null }
  return { ...claimed, ...nothing, worker: 'w', to, delayMs, keepMs }
}

const command = (at: number, to: 'cancelled' | 'gone' | 'ready', keepMs: number): Step =>
  step(`command(${at}, ${to}, keep ${keepMs})`, async (model, real) => {
    const job = model.jobs[at % Math.max(1, model.jobs.length)]
    if (job === undefined || job.state === 'gone' || job.state === 'running') return
    if (to === 'ready' && job.state !== 'failed' && job.state !== 'cancelled') return
    if (to === 'cancelled' && isOver(job)) return
    const changing = real.store.changeJob({ id: job.id, from: job.state, to, keepMs })
    if (to === 'ready') return await retry(model, real, job, changing)
    expect(await changing).toBe(job.claim === null ? 'changed' : 'taken')
    Object.assign(job, { state: to, claim: null })
    end(model, job, keepMs, real.clock.now)
  })

async function retry(model: Model, real: Real, job: ModelJob, changing: Promise<string>): Promise<void> {
  const slot = model.slots.get(job.key)
  const other = model.jobs.find((each) => each !== job && each.id === slot?.id && !isOver(each))
  if (other !== undefined && (job.whilst === 'unfinished' || isWaiting(other)))
    return await expect(changing).rejects.toMatchObject({ code: 'E_DUPLICATE_JOB', existingId: other.id })
  expect(await changing).toBe('changed')
  model.slots.set(job.key, {
    id: job.id,
    until: slot !== undefined && slot.until > real.clock.now ? slot.until : 0,
  })
  Object.assign(job, { state: 'ready', dueAt: real.clock.now, keepUntil: Infinity })
}

const prune = (limit: number): Step =>
  step(`prune(${limit})`, async (model, real) => {
    // As often as needed, so that the model need not know the order.
    for (let i = 0; i < 60; i += 1) await Promise.all([real.store.pruneJobs(limit), real.store.sweepRows(limit)])
    for (const job of model.jobs) if (isOver(job) && job.keepUntil <= real.clock.now) job.state = 'gone'
  })

const policy = fc.constantFrom<UniquePolicy>('ignore', 'reject', 'replace', 'reschedule')
const forMs = fc.constantFrom(null, null, 1, 1_000, 60_000)
const delay = fc.constantFrom(0, 0, 500, 2_000)
const keep = fc.constantFrom(0, 700, Infinity)
const nth = fc.nat(30)
const unfinished = fc.constant<UniqueWhile>('unfinished')
const either = fc.constantFrom<UniqueWhile>('unfinished', 'waiting')
const strict = fc.record({ key: fc.constant('strict'), whilst: unfinished, policy, forMs, delay })
const loose = fc.record({ key: fc.constantFrom('loose', 'other'), whilst: either, policy, forMs, delay })
const ends = fc.constantFrom<State>('done', 'failed', 'cancelled', 'ready', 'retrying')
const commands = fc.constantFrom('cancelled' as const, 'gone' as const, 'ready' as const, 'ready' as const)
const steps = [
  strict.map(enqueue),
  loose.map(enqueue),
  loose.map(enqueue),
  fc.constantFrom(1, 499, 1_000, 60_000).map(advance),
  fc.constantFrom(0, 1, 1).map(claim),
  fc.tuple(nth, ends, keep).map((given) => settle(...given)),
  fc.tuple(nth, commands, keep).map((given) => command(...given)),
  fc.constantFrom(1, 100).map(prune),
]

test(
  'unique slots are taken and released as a plain model says, after random operations',
  { timeout: 60_000 },
  async () => {
    await fc.assert(
      fc.asyncProperty(fc.commands(steps, { maxCommands: 60, size: 'max' }), async (given) => {
        const clock = { now: 1_800_000_000_000 }
        const world = systemWorld()
        const file = await openFile({ target: ':memory:', durability: 'process' }, true, world)
        const store = new SqliteStore(file, world, { durability: 'process', now: () => clock.now })
        await store.addWorker({ id: 'w', host: 'here', pid: 1 })
        try {
          const real: Real = { store, clock, ids: world.ids }
          await fc.asyncModelRun(() => ({ model: { jobs: [], slots: new Map() }, real }), given)
        } finally {
          await store.close()
        }
      }),
      // Campaigns of the reference model run many more (`npm run model`).
      { numRuns: 40, interruptAfterTimeLimit: 30_000, markInterruptAsFailure: false },
    )
  },
)

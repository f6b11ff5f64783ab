import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { job } from '../src/index.js'
import type { Mill } from '../src/index.js'
import { internalsOf } from '../src/mill/internals.js'
import type { ClaimedJob, SettledJob, Store } from '../src/store/store.js'
import { seeded } from '../src/testing/simulation/random.js'
import type { Random } from '../src/testing/simulation/random.js'
import { clockedMill } from './support/clocked-mill.js'
import { freshStore } from './support/fresh-store.js'
import { rawTables } from './support/raw-tables.js'
import type { RawTables } from './support/raw-tables.js'

/**
 * S8: `why` in many states of a fleet. Random programs move jobs, queues and workers through the verbs of the store; the oracle
 * below is a model of its own, which knows only what it asked for, and shares no code with `why`. A state is one job at one moment.
 * `MILLRACE_WHY_STATES=5000` checks as many; a failure names its seed.
 */
const STATES = Number(process.env['MILLRACE_WHY_STATES'] ?? 700)

const folder = mkdtempSync(join(tmpdir(), 'millrace-why-states-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const run = async (): Promise<void> => undefined
const jobs = [job('plain', run), job('limited', { run, limit: { max: 1 } }), job('strange', run)]
const NAMES = ['plain', 'limited', 'strange'] as const
const QUEUES = ['one', 'two'] as const
const LEASE_MS = 15_000
const JOBS_MAX = 40
const STEPS = 60

type ModelState =
  | 'waits'
  | 'blocked'
  | 'ready'
  | 'held'
  | 'running'
  | 'paused'
  | 'parked'
  | 'done'
  | 'failed'
  | 'cancelled'

/** A job as the program left it. */
interface ModelJob {
  readonly id: string
  readonly name: string
  readonly queue: string
  state: ModelState
  dueAt: number
  hasFailed: boolean
  streak: number
  parents: ModelJob[]
  claimed?: { readonly worker: string; readonly job: ClaimedJob }
}

interface ModelWorker {
  readonly id: string
  readonly names: readonly string[] | undefined
  readonly slots: number
  readonly bounds: Readonly<Record<string, number>>
  beatAt: number
}

/** One random program on a store of its own. */
class Program {
  readonly #clock = { now: Date.UTC(2030, 0, 1) }
  readonly #random: Random
  readonly #jobs: ModelJob[] = []
  readonly #workers: ModelWorker[] = []
  readonly #pausedUntil = new Map<string, number>()
  #mill!: Mill
  #store!: Store
  #tables!: RawTables
  #fences = 0
  checked = 0
  readonly seen = new Map<string, number>()

  constructor(seed: number) {
    this.#random = seeded(seed)
  }

  async run(): Promise<void> {
    const store = freshStore(folder)
    this.#tables = rawTables(store)
    this.#mill = await clockedMill(store, this.#clock, { jobs })
    this.#store = internalsOf(this.#mill)?.store as Store
    for (let step = 0; step < STEPS; step += 1) {
      const done = await this.#random.pick(this.#steps())()
      if (done !== false) await this.#check(step)
    }
    await this.#mill.close({ deadline: 0 })
  }

  #steps(): (() => Promise<unknown>)[] {
    return [
      () => this.#enqueue(),
      () => this.#enqueue(),
      () => this.#enqueue(),
      () => this.#addWorker(),
      () => this.#claim(),
      () => this.#claim(),
      () => this.#settle(),
      () => this.#pauseQueue(),
      () => this.#command(),
      () => this.#advance(),
      () => this.#promote(),
    ]
  }

  async #enqueue(): Promise<unknown> {
    if (this.#jobs.length === JOBS_MAX) return false
    const [name, queue] = [this.#random.pick(NAMES), this.#random.pick(QUEUES)]
    const waitMs = this.#random.chance(0.25) ? 1_000 * this.#random.int(1, 30) : 0
    const parents =
      this.#random.chance(0.2) && this.#jobs.length > 0
        ? [...new Set([this.#random.pick(this.#jobs), this.#random.pick(this.#jobs)])]
        : []
    const after = parents.map(({ id }) => id)
    const { id } = await this.#mill.enqueue(
      name,
      {},
      { queue, ...(waitMs > 0 ? { in: waitMs } : {}), ...(after.length > 0 ? { after } : {}) },
    )
    const made: ModelJob = {
      id,
      name,
      queue,
      state: 'ready',
      dueAt: this.#clock.now + waitMs,
      hasFailed: false,
      streak: 0,
      parents: parents.filter(isOpen),
    }
    this.#jobs.push(made)
    this.#settleIn(made)
    return true
  }

  /** Where a job that no worker has waits. */
  #settleIn(one: ModelJob): void {
    one.state = one.parents.length > 0 ? 'blocked' : one.dueAt > this.#clock.now ? 'waits' : 'ready'
  }

  async #addWorker(): Promise<unknown> {
    if (this.#workers.length === 3) return false
    const names = this.#random.pick<readonly string[] | undefined>([
      undefined,
      ['plain', 'limited'],
      ['plain'],
      ['limited', 'strange'],
    ])
    const slots = this.#random.int(1, 3)
    const bounds: Record<string, number> = this.#random.chance(0.3) ? { one: 1 } : {}
    const id = `w${this.#workers.length}-${this.#random.int(0, 999_999)}`
    const about = { slots, queues: bounds, ...(names === undefined ? {} : { names }) }
    await this.#store.leases.addWorker({ id, host: 'here', pid: 1, leaseMs: LEASE_MS, about })
    this.#workers.push({ id, names, slots, bounds, beatAt: this.#clock.now })
    return true
  }

  async #claim(): Promise<unknown> {
    const name = this.#random.pick(NAMES)
    const able = this.#workers.filter((worker) => this.#isAlive(worker) && knows(worker, name))
    const worker = able.find((each) => QUEUES.some((queue) => !this.#isFull(each, queue)))
    if (worker === undefined) return false
    const queues = QUEUES.filter((queue) => !this.#isFull(worker, queue))
    const starting = name === 'plain' && this.#random.chance(0.2) ? 0 : 1
    const fence = (this.#fences += 1)
    const request = {
      worker: worker.id,
      fence,
      names: [name],
      queues,
      max: 1,
      starting,
      rooms: new Map<string, number>(),
      suspects: 'none' as const,
    }
    const claimed =
      name === 'limited'
        ? await this.#store.leases.claimLimited({
            ...request,
            limits: new Map([[name, { limit: { max: 1, isKeyed: false } }]]),
          })
        : await this.#store.leases.claimJobs(request)
    for (const each of claimed.jobs) {
      const one = this.#jobs.find(({ id }) => id === each.id) as ModelJob
      one.state = starting === 0 ? 'held' : 'running'
      one.claimed = { worker: worker.id, job: each }
    }
    return claimed.jobs.length > 0
  }

  async #settle(): Promise<unknown> {
    const claimed = this.#jobs.filter((each) => each.claimed !== undefined)
    if (claimed.length === 0) return false
    const one = this.#random.pick(claimed)
    const to =
      one.state === 'held'
        ? 'ready'
        : this.#random.pick(['done', 'done', 'failed', 'retrying', 'parked', 'ready'] as const)
    const delayMs = to === 'retrying' ? 1_000 * this.#random.int(5, 30) : to === 'ready' ? 0 : null
    const streak = to === 'ready' && one.state === 'running' ? 2 : 0
    const hasFailed = to === 'failed' || to === 'retrying'
    const held = one.claimed as NonNullable<ModelJob['claimed']>
    const settled = settledOf(held.job, held.worker, this.#clock.now, {
      to,
      delayMs,
      streak,
      error: hasFailed ? '{"name":"Error","message":"broken"}' : null,
      reason: to === 'parked' ? 'its payload does not fit' : null,
    })
    const { refused } = await this.#store.leases.settleJobs([settled], [held.job.fence])
    expect(refused).toEqual([])
    Object.assign(one, { claimed: undefined, streak, hasFailed: hasFailed || (to === 'ready' && one.hasFailed) })
    if (delayMs !== null) one.dueAt = this.#clock.now + delayMs
    if (to === 'retrying' || to === 'ready') this.#settleIn(one)
    else one.state = to
    return true
  }

  async #pauseQueue(): Promise<unknown> {
    const name = this.#random.pick(QUEUES)
    const [queue, forMs] = [this.#mill.queue(name), 1_000 * this.#random.int(1, 20)]
    const how = this.#random.int(0, 3)
    if (how === 0) await queue.pause()
    else if (how === 1) await queue.pauseUntil(forMs)
    else await queue.resume()
    this.#pausedUntil.set(name, how === 0 ? Infinity : how === 1 ? this.#clock.now + forMs : 0)
    return true
  }

  async #command(): Promise<unknown> {
    const free = this.#jobs.filter((each) => each.claimed === undefined)
    if (free.length === 0) return false
    const one = this.#random.pick(free)
    const verb = this.#random.pick(['pause', 'resume', 'cancel', 'retry'] as const)
    const isApplied = await this.#mill[verb](one.id)
    const waits = one.state === 'waits' || one.state === 'blocked' || one.state === 'ready'
    if (verb === 'pause') {
      expect(isApplied, `pause of ${one.state}`).toBe(waits || one.state === 'paused')
      if (waits) one.state = 'paused'
    } else if (verb === 'resume') {
      expect(isApplied, `resume of ${one.state}`).toBe(one.state === 'paused')
      // The parents that were done meanwhile are no longer waited for.
      if (isApplied) this.#settleIn(Object.assign(one, { parents: one.parents.filter(isOpen) }))
    } else if (verb === 'cancel') {
      expect(isApplied, `cancel of ${one.state}`).toBe(waits || one.state === 'paused')
      if (isApplied) Object.assign(one, { state: 'cancelled', parents: [] })
    } else if (isApplied)
      Object.assign(one, { state: 'ready', dueAt: this.#clock.now, streak: 0, hasFailed: false, parents: [] })
    return true
  }

  async #advance(): Promise<unknown> {
    this.#clock.now += 100 * this.#random.int(1, 120)
    for (const worker of this.#workers) {
      if (!this.#isAlive(worker) || !this.#random.chance(0.8)) continue
      // A beat writes the time of the machine, which is not that of this store.
      await this.#tables.run(
        (table) => `update ${table('workers')} set beat_at = ${this.#clock.now} where worker = '${worker.id}'`,
      )
      worker.beatAt = this.#clock.now
    }
    return true
  }

  /** Until nothing is left, as upkeep does. */
  async #promote(): Promise<unknown> {
    while ((await this.#store.jobs.promoteJobs(100)).again);
    for (const one of this.#jobs) {
      if (one.state === 'blocked') Object.assign(one, { parents: one.parents.filter(isOpen) })
      if (one.state === 'blocked' || one.state === 'waits') this.#settleIn(one)
    }
    return true
  }

  async #check(step: number): Promise<void> {
    const answers = await this.#mill.why(this.#jobs.map(({ id }) => id))
    for (const [index, one] of this.#jobs.entries()) {
      const answer = answers[index]
      const [reasons, blockers, text] = this.#expected(one)
      const state = `step ${step}, ${one.name} in ${one.queue}, ${one.state}: ${JSON.stringify(answer)}`
      expect(reasons, state).toContain(answer?.reason)
      if (blockers !== undefined)
        expect(new Set(answer?.blockers.map(({ id }) => id)), state).toEqual(new Set(blockers))
      if (text !== undefined) expect(answer?.text, state).toContain(text)
      this.checked += 1
      this.seen.set(answer?.reason as string, (this.seen.get(answer?.reason as string) ?? 0) + 1)
    }
  }

  /** Which reasons are true, what must be named as the blockers, and what the sentence must say. */
  #expected(one: ModelJob): [reasons: readonly string[], blockers?: readonly string[], text?: string] {
    switch (one.state) {
      case 'done':
      case 'failed':
      case 'cancelled':
        return [['ended'], [], one.state]
      case 'running':
        return [['running'], [one.claimed?.worker as string], 'running']
      case 'paused':
        return [['paused'], []]
      case 'parked':
        return [['parked'], [], 'its payload does not fit']
      case 'blocked': {
        const open = one.parents.filter(isOpen).map(({ id }) => id)
        return open.length > 0 ? [['parents'], open] : [['starting'], []]
      }
      case 'waits':
        return one.dueAt > this.#clock.now ? [['time'], [], new Date(one.dueAt).toISOString()] : [['starting'], []]
      case 'held':
      case 'ready':
        return this.#expectedReady(one)
      default:
        return one.state satisfies never
    }
  }

  #expectedReady(one: ModelJob): [reasons: readonly string[], blockers?: readonly string[], text?: string] {
    if ((this.#pausedUntil.get(one.queue) ?? 0) > this.#clock.now) return [['queue-paused'], [one.queue]]
    if (one.claimed !== undefined) return [['held'], [one.claimed.worker]]
    const alive = this.#workers.filter((worker) => this.#isAlive(worker))
    if (alive.length === 0) return [['no-worker'], []]
    const able = alive.filter((worker) => knows(worker, one.name))
    if (able.length === 0) return [['unknown-name'], [], one.name]
    if (one.streak >= 2) return [['suspect'], []]
    if (able.every((worker) => this.#isFull(worker, one.queue))) return [['slot'], able.map(({ id }) => id)]
    if (one.name !== 'limited') return [['starting'], []]
    const inFlight = this.#jobs.filter((each) => each.name === 'limited' && each.claimed !== undefined)
    if (inFlight.length >= 1) return [['limit'], inFlight.map(({ id }) => id), '1 of 1']
    // Which of the ready jobs comes first is the limits' own matter; alone it must start.
    const others = this.#jobs.filter((each) => each.name === 'limited' && each.state === 'ready' && each !== one)
    return others.length === 0 ? [['starting'], []] : [['starting', 'turn'], []]
  }

  #isAlive({ beatAt }: ModelWorker): boolean {
    return this.#clock.now - beatAt <= LEASE_MS
  }

  #isFull({ id, slots, bounds }: ModelWorker, queue: string): boolean {
    const running = this.#jobs.filter((each) => each.state === 'running' && each.claimed?.worker === id)
    const bound = bounds[queue]
    return (
      running.length >= slots || (bound !== undefined && running.filter((each) => each.queue === queue).length >= bound)
    )
  }
}

/** A parent that failed or was cancelled may be retried, so its child waits. */
function isOpen({ state }: ModelJob): boolean {
  return state !== 'done'
}

function knows({ names }: ModelWorker, name: string): boolean {
  return names === undefined || names.includes(name)
}

function settledOf(claimed: ClaimedJob, worker: string, now: number, change: Partial<SettledJob>): SettledJob {
  const { ref, fence, id, name, queue, key, group, dueAt, retries, crashes, log, isParent } = claimed
  return {
    ref,
    fence,
    id,
    name,
    queue,
    key,
    group,
    dueAt,
    retries,
    crashes,
    log,
    isParent,
    to: 'done',
    delayMs: null,
    attempt: claimed.attempt + 1,
    streak: 0,
    startedAt: now,
    hasBegun: true,
    worker,
    result: null,
    error: null,
    reason: null,
    keepMs: Infinity,
    ...change,
  }
}

test(`why is right in ${STATES} states of simulated fleets`, { timeout: 600_000 }, async () => {
  const seen = new Map<string, number>()
  let checked = 0
  for (let seed = 1; checked < STATES; seed += 1) {
    const program = new Program(seed)
    await program.run().catch((error: unknown) => {
      throw new Error(`seed ${seed}: ${error instanceof Error ? error.message : String(error)}`, { cause: error })
    })
    checked += program.checked
    for (const [reason, count] of program.seen) seen.set(reason, (seen.get(reason) ?? 0) + count)
  }
  const reasons = [
    'ended',
    'running',
    'held',
    'paused',
    'parked',
    'parents',
    'time',
    'queue-paused',
    'no-worker',
    'unknown-name',
    'suspect',
    'slot',
    'limit',
    'starting',
  ]
  expect([...seen.keys()]).toEqual(
    expect.arrayContaining(STATES >= 5_000 ? reasons : ['ended', 'running', 'parents', 'time', 'starting']),
  )
})

import fc from 'fast-check'
import { expect } from 'vitest'
import type { Mill } from '../../src/index.js'
import { Abort, Snooze, job } from '../../src/index.js'
import type { Context } from '../../src/index.js'
import { STATES } from '../../src/job/rules/states.js'
import type { TestKit } from '../../src/testing/index.js'
import { BACKOFF_MS, ReferenceModel, Refused, RETRY_LIMIT } from './reference-model.js'
import type { Enqueue, ModelJob, Outcome, ParentPolicy } from './reference-model.js'

/** One step of a program, as data: a failing program is printed and shrunk. Jobs are named by a number, modulo those that exist. */
export type Step =
  | { readonly step: 'enqueue'; readonly given: Given }
  | { readonly step: 'child'; readonly given: Given }
  | { readonly step: 'schedule'; readonly key: string; readonly inMs: number; readonly given: Given }
  | { readonly step: 'unschedule'; readonly key: string }
  | { readonly step: 'command'; readonly verb: Verb; readonly at: number }
  | { readonly step: 'edit'; readonly at: number; readonly change: Parameters<ReferenceModel['edit']>[1] }
  | {
      readonly step: 'addParents'
      readonly at: number
      readonly parents: readonly number[]
      readonly policy: ParentPolicy
    }
  | { readonly step: 'pauseQueue'; readonly queue: string; readonly forMs: number | null }
  | { readonly step: 'resumeQueue'; readonly queue: string }
  | { readonly step: 'seal'; readonly group: string; readonly follows: boolean }
  | { readonly step: 'group'; readonly group: string; readonly verb: GroupVerb }
  | { readonly step: 'run'; readonly queue: string; readonly meanwhile: readonly Step[]; readonly outcome: Outcome }
  | { readonly step: 'advance'; readonly ms: number }

type Given = Enqueue & { readonly name: string }
type Verb = 'cancel' | 'pause' | 'resume' | 'retry' | 'delete'
type GroupVerb = 'pause' | 'resume' | 'cancel' | 'retryFailed'

const QUEUES = ['default', 'mail']
const GROUPS = ['g', 'h']
const NAMES = ['one', 'two', 'unkept']
const followerOf = (group: string): string => `after-${group}`

/** A mill under test beside the model. */
export class Pair {
  readonly model: ReferenceModel
  readonly #kit: TestKit
  readonly #ids: string[] = []
  /** The handlers that run now, innermost last: each does what its `run` step says. */
  readonly #handlers: ((ctx: Context) => Promise<unknown>)[]
  readonly #running: { readonly ctx: Context; readonly job: ModelJob }[] = []

  constructor(kit: TestKit, handlers: ((ctx: Context) => Promise<unknown>)[]) {
    this.#kit = kit
    this.#handlers = handlers
    this.model = new ReferenceModel(kit.now.getTime(), ['unkept'])
  }

  /** The jobs of every program. */
  static jobs(handlers: ((ctx: Context) => Promise<unknown>)[]) {
    const run = (_: unknown, ctx: Context): Promise<unknown> =>
      (handlers.at(-1) as (ctx: Context) => Promise<unknown>)(ctx)
    const retry = { limit: RETRY_LIMIT, backoff: { start: BACKOFF_MS, factor: 1 }, jitter: 0 }
    return [...NAMES, ...GROUPS.map(followerOf)].map((name) =>
      job(name, { run, retry, timeout: Infinity, ...(name === 'unkept' ? { keep: 'none' as const } : {}) }),
    )
  }

  get #mill(): Mill {
    return this.#kit.mill
  }

  async run(step: Step): Promise<void> {
    await this.#step(step)
    await this.#agree()
  }

  async #step(step: Step): Promise<void> {
    const { model } = this
    switch (step.step) {
      case 'enqueue': {
        const { name, ...given } = this.#resolve(step.given)
        return this.#same(
          () => model.enqueue(name, given),
          () => this.#mill.enqueue(name, {}, this.#inMill(given)),
        )
      }
      case 'child': {
        const running = this.#running.at(-1)
        if (running === undefined) return
        const { name, ...given } = this.#resolve(step.given)
        return this.#same(
          () => model.enqueue(name, given, running.job),
          () => running.ctx.enqueue(name, {}, this.#inMill(given)),
        )
      }
      case 'schedule': {
        const { key, inMs } = step
        const { name, ...given } = this.#resolve(step.given)
        return this.#same(
          () => model.schedule(name, key, inMs, given),
          () => this.#mill.schedule(name, {}, inMs, { ...this.#inMill(given), key }),
        )
      }
      case 'unschedule':
        return this.#same(
          () => model.unschedule('one', step.key),
          () => this.#mill.unschedule('one', step.key),
        )
      case 'command':
        return this.#onJob(
          step.at,
          (each) => model[step.verb](each),
          (id) => this.#mill[step.verb](id),
        )
      case 'edit':
        return this.#onJob(
          step.at,
          (each) => model.edit(each, step.change),
          (id) => {
            const { inMs, ...rest } = step.change
            return this.#mill.edit(id, { ...rest, ...(inMs === undefined ? {} : { in: inMs }) })
          },
        )
      case 'addParents': {
        const parents = this.#numbers(step.parents)
        if (parents.length === 0) return
        const after = parents.map((number) => this.#ids[number] as string)
        return this.#onJob(
          step.at,
          (each) =>
            model.addParents(
              each,
              parents.map((number) => model.jobs[number] as ModelJob),
              step.policy,
            ),
          (id) => this.#mill.edit(id, { after, onParentFailure: step.policy }),
        )
      }
      case 'pauseQueue': {
        model.pauseQueue(step.queue, step.forMs)
        const queue = this.#mill.queue(step.queue)
        return step.forMs === null ? queue.pause() : queue.pauseUntil(step.forMs)
      }
      case 'resumeQueue':
        model.resumeQueue(step.queue)
        return this.#mill.queue(step.queue).resume()
      case 'seal': {
        const name = followerOf(step.group)
        const follow = step.follows ? () => void model.enqueue(name, {}) : null
        return this.#same(
          () => model.seal(step.group, follow),
          () => this.#mill.group(step.group, step.follows ? { whenDone: [name, {}] } : {}).seal(),
        )
      }
      case 'group':
        return this.#same(
          () => this.#groupVerb(step.group, step.verb),
          () => this.#mill.group(step.group)[step.verb](),
        )
      case 'run':
        return this.#runNext(step)
      case 'advance':
        model.advance(step.ms)
        return this.#kit.advance(step.ms)
    }
  }

  /** A job begins, other steps happen while it runs, and it ends. */
  async #runNext({ queue, meanwhile, outcome }: Extract<Step, { step: 'run' }>): Promise<void> {
    this.model.settle()
    const begun = this.model.begin(queue)
    let ran: string | undefined
    this.#handlers.push(async (ctx) => {
      ran = ctx.id
      if (begun === undefined) throw new Error('the model has nothing to run')
      expect(ctx.id, 'the job that begins').toBe(this.#ids[begun.number])
      this.#running.push({ ctx, job: begun })
      await this.#agree()
      for (const step of meanwhile) await this.run(step)
      this.#running.pop()
      this.model.end(begun, outcome)
      if (outcome.kind === 'return') return undefined
      if (outcome.kind === 'snooze') throw new Snooze(outcome.ms)
      throw outcome.kind === 'abort' ? new Abort('planned') : new Error('planned')
    })
    const thrown = await this.#kit.consume(queue).then(
      () => undefined,
      (error: Error & { code?: string }) => error,
    )
    this.#handlers.pop()
    if (thrown !== undefined && thrown.code !== 'E_QUEUE_EMPTY' && !/planned|snoozed/.test(thrown.message)) throw thrown
    expect(ran === undefined, 'nothing to run').toBe(begun === undefined)
  }

  #groupVerb(group: string, verb: GroupVerb): number {
    const members = this.model.jobs.filter((each) => each.group === group).toReversed()
    let count = 0
    for (const each of members) {
      if (verb === 'retryFailed') count += each.state === 'failed' && this.#retried(each) ? 1 : 0
      else if (verb === 'pause' && each.state === 'paused') continue
      else count += this.model[verb](each) ? 1 : 0
    }
    return count
  }

  #retried(each: ModelJob): boolean {
    try {
      return this.model.retry(each)
    } catch (error) {
      if (error instanceof Refused) return false
      throw error
    }
  }

  /** Parents as numbers of jobs that exist. */
  #resolve(given: Given): Given {
    const { after, ...rest } = given
    const numbers = this.#numbers(after ?? [])
    return numbers.length === 0 ? rest : { ...rest, after: numbers }
  }

  #inMill({ inMs, expiresMs, unique, after, ...rest }: Enqueue): object {
    return {
      ...rest,
      ...(inMs === undefined ? {} : { in: inMs }),
      ...(expiresMs === undefined ? {} : { expires: expiresMs }),
      ...(after === undefined ? {} : { after: after.map((number) => this.#ids[number]) }),
      ...(unique === undefined ? {} : { unique: uniqueOf(unique) }),
    }
  }

  /** Existing jobs, each once. */
  #numbers(given: readonly number[]): number[] {
    if (this.model.jobs.length === 0) return []
    return [...new Set(given.map((number) => number % this.model.jobs.length))]
  }

  async #onJob<T>(at: number, inModel: (each: ModelJob) => T, inMill: (id: string) => Promise<T>): Promise<void> {
    const number = this.#numbers([at])[0]
    if (number === undefined) return
    return this.#same(
      () => inModel(this.model.jobs[number] as ModelJob),
      () => inMill(this.#ids[number] as string),
    )
  }

  /** Both do the same, or refuse by the same code. A new job's id is noted under its number. */
  async #same(inModel: () => unknown, inMill: () => unknown): Promise<void> {
    this.model.settle()
    const expected = answerOf(inModel)
    const got = await Promise.resolve(inMill()).then(
      (value) => ({ value }),
      (error: Error & { code?: string }) => {
        if (error.code === undefined) throw error
        return { refused: error.code }
      },
    )
    if ('value' in expected && isHandle(expected.value) && 'value' in got) {
      const { id, isNew } = got.value as { id: string; isNew: boolean }
      expect(isNew, 'isNew').toBe(expected.value.isNew)
      if (isNew) this.#ids[expected.value.number] = id
      else expect(id, 'the job that is there already').toBe(this.#ids[expected.value.number])
    } else expect(got).toEqual(expected)
  }

  /** Every record, group and queue is as the model says. */
  async #agree(): Promise<void> {
    this.model.settle()
    await this.#kit.advance(0)
    await this.#noteFollowers()
    const got: unknown[] = []
    for (const id of this.#ids) got.push(recordOf(await this.#mill.get(id), this.#ids))
    expect(got).toEqual(this.model.jobs.map(expectedOf))
    for (const group of GROUPS) {
      const { total, ...progress } = await this.#mill.group(group).progress()
      const counts = this.model.progress(group)
      expect(Object.fromEntries(STATES.map((state) => [state, progress[state]])), `group ${group}`).toEqual(
        Object.fromEntries(STATES.map((state) => [state, counts[state] ?? 0])),
      )
      expect(total).toBe(Object.values(counts).reduce((sum, count) => sum + count, 0))
    }
  }

  /** Jobs that follow a group are enqueued by the engine itself. */
  async #noteFollowers(): Promise<void> {
    for (const each of this.model.jobs) {
      if (this.#ids[each.number] !== undefined) continue
      const known = new Set(this.#ids)
      for await (const found of this.#mill.find({ job: each.name, order: 'oldest' }))
        if (!known.has(found.id)) this.#ids[each.number] ??= found.id
    }
  }
}

function isHandle(value: unknown): value is { number: number; isNew: boolean } {
  return typeof value === 'object' && value !== null && 'isNew' in value
}

function answerOf(verb: () => unknown): { value: unknown } | { refused: string } {
  try {
    return { value: verb() }
  } catch (error) {
    if (error instanceof Refused) return { refused: error.code }
    throw error
  }
}

function uniqueOf({ value, forMs, ...rest }: NonNullable<Enqueue['unique']>): object {
  return { by: () => value, ...(forMs === undefined ? {} : { for: forMs }), ...rest }
}

interface Shown {
  readonly state: string
  readonly attempt: number
  readonly dueAt?: number
  readonly priority: number
  readonly queue: string
  readonly after: readonly number[]
}

function recordOf(record: Awaited<ReturnType<Mill['get']>>, ids: readonly string[]): Shown | 'gone' {
  if (record === undefined) return 'gone'
  const { state, attempt, dueAt, priority, queue, after } = record
  return {
    state,
    attempt,
    ...(isOver(state) ? {} : { dueAt: dueAt.getTime() }),
    priority,
    queue,
    after: after.map((id) => ids.indexOf(id)),
  }
}

function expectedOf(each: ModelJob): Shown | 'gone' {
  if (each.state === 'gone') return 'gone'
  const { state, attempt, dueAt, priority, queue, after } = each
  return { state, attempt, ...(isOver(state) ? {} : { dueAt }), priority, queue, after }
}

const isOver = (state: string): boolean => state === 'done' || state === 'failed' || state === 'cancelled'

// ── Random programs ──────────────────────────────────────────────────────────

const key = fc.constantFrom('a', 'b')
const at = fc.nat(40)
const ms = fc.constantFrom(0, 0, 0, 1, 5_000, 3_600_000)
const queue = fc.constantFrom(...QUEUES)
const group = fc.constantFrom(...GROUPS)
const priority = fc.integer({ min: -2, max: 2 })
const policy = fc.constantFrom<ParentPolicy>('wait', 'cancel', 'run')
const unique = fc.record(
  {
    value: fc.constantFrom('u', 'v'),
    forMs: fc.constantFrom(5_000, 3_600_000),
    while: fc.constantFrom('unfinished' as const, 'waiting' as const),
    onDuplicate: fc.constantFrom('ignore' as const, 'reject' as const, 'replace' as const, 'reschedule' as const),
  },
  { requiredKeys: ['value'] },
)

/** Options of an enqueue: mostly few at once, so that each is met in many programs. */
const given: fc.Arbitrary<Given> = fc
  .tuple(
    fc.constantFrom('one', 'one', 'two', 'unkept'),
    fc.subarray(['queue', 'priority', 'inMs', 'expiresMs', 'key', 'onDuplicate', 'unique', 'group', 'after'] as const, {
      maxLength: 4,
    }),
    fc.record({
      queue,
      priority,
      inMs: ms,
      expiresMs: fc.constantFrom(5_000, 7_200_000),
      key,
      onDuplicate: fc.constantFrom('return' as const, 'reject' as const, 'replace' as const),
      unique,
      group,
      after: fc.array(at, { minLength: 1, maxLength: 3 }),
      onParentFailure: policy,
    }),
  )
  .map(([name, names, all]) => {
    const chosen = new Set<string>(names)
    if (!chosen.has('key')) chosen.delete('onDuplicate')
    if (chosen.has('after')) chosen.add('onParentFailure')
    return { name, ...Object.fromEntries(Object.entries(all).filter(([option]) => chosen.has(option))) } as Given
  })

const plain: fc.Arbitrary<Step>[] = [
  fc.record({ step: fc.constant('enqueue' as const), given }),
  fc.record({ step: fc.constant('enqueue' as const), given }),
  fc
    .record({ step: fc.constant('schedule' as const), key, inMs: ms, given })
    .map((step) => ({ ...step, given: withoutKey(step.given) })),
  fc.record({ step: fc.constant('unschedule' as const), key }),
  fc.record({
    step: fc.constant('command' as const),
    verb: fc.constantFrom<Verb>('cancel', 'pause', 'resume', 'retry', 'delete'),
    at,
  }),
  fc.record({
    step: fc.constant('edit' as const),
    at,
    change: fc.record({ priority, queue, inMs: ms }, { requiredKeys: [] }),
  }),
  fc.record({
    step: fc.constant('addParents' as const),
    at,
    parents: fc.array(at, { minLength: 1, maxLength: 2 }),
    policy,
  }),
  fc.record({ step: fc.constant('pauseQueue' as const), queue, forMs: fc.constantFrom(null, 5_000, 3_600_000) }),
  fc.record({ step: fc.constant('resumeQueue' as const), queue }),
  fc.record({ step: fc.constant('seal' as const), group, follows: fc.boolean() }),
  fc.record({
    step: fc.constant('group' as const),
    group,
    verb: fc.constantFrom<GroupVerb>('pause', 'resume', 'cancel', 'retryFailed'),
  }),
  fc.record({ step: fc.constant('advance' as const), ms: fc.constantFrom(1, 4_999, 10_000, 3_600_000) }),
]

const outcome: fc.Arbitrary<Outcome> = fc.oneof(
  { weight: 3, arbitrary: fc.constant({ kind: 'return' as const }) },
  { weight: 2, arbitrary: fc.constant({ kind: 'throw' as const }) },
  { weight: 1, arbitrary: fc.constant({ kind: 'abort' as const }) },
  { weight: 1, arbitrary: fc.constantFrom(0, 5_000).map((delay) => ({ kind: 'snooze' as const, ms: delay })) },
)

function withoutKey({ key: _key, onDuplicate: _policy, inMs: _ms, ...rest }: Given): Given {
  return rest
}

const { step } = fc.letrec<{ step: Step; inner: Step }>((tie) => ({
  inner: fc.oneof({ maxDepth: 2 }, ...plain, fc.record({ step: fc.constant('child' as const), given }), tie('step')),
  step: fc.oneof({ maxDepth: 2, withCrossShrink: true }, ...plain.map((arbitrary) => ({ arbitrary, weight: 1 })), {
    weight: 5,
    arbitrary: fc.record({
      step: fc.constant('run' as const),
      queue,
      meanwhile: fc.array(tie('inner'), { maxLength: 3 }),
      outcome,
    }),
  }),
}))

export const programs = (maxLength: number): fc.Arbitrary<Step[]> => fc.array(step, { maxLength, size: 'max' })

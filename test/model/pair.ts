import assert from 'node:assert/strict'
import type { BulkResult, Mill } from '../../src/index.js'
import { Abort, Snooze } from '../../src/index.js'
import type { Answer } from './databases.js'
import { answerOf } from './databases.js'
import { compare, KnownIds } from './compare.js'
import type { Fleet, RunningHandler } from './fleet.js'
import { START } from './fleet.js'
import { inputOf, insertOf, knownJobs, millOptions, withParents } from './inserts.js'
import { EVENTS } from './bodies.js'
import { read } from './reads.js'
import {
  begin,
  finish,
  handlersIn,
  isQuarantined,
  isWorking,
  leave,
  nextOf,
  restart,
  settleIn,
} from './reference/attempts.js'
import type { Outcome } from './reference/attempts.js'
import type { BulkCount } from './reference/bulk.js'
import { commandAll } from './reference/bulk.js'
import { addParents, edit, pause, remove, resume, retry } from './reference/commands.js'
import { cancel } from './reference/ends.js'
import type { Enqueued } from './reference/enqueue.js'
import { enqueue, unschedule } from './reference/enqueue.js'
import { isLimited, LIMITS, roomFor } from './reference/limits.js'
import { commandGroup, pauseQueue, resumeQueue } from './reference/groups.js'
import { backfill, deleteSchedule, pauseSchedule, putSchedule, resumeSchedule, runNow } from './reference/schedules.js'
import type { Attempt, Enqueue, Model, ModelJob, Recurring } from './reference/state.js'
import { beginNext, commandSequence, endEmpty, giveBack, mustWait } from './reference/sequences.js'
import { copyOf, emptyModel, isSuspect, jobOf, KEEP_MS, LEASE_MS, Refused, WORKFLOW } from './reference/state.js'
import { drive, endHeld, endWorkflow, send } from './reference/workflows.js'
import { noteChildren, recordedIn } from './logs.js'
import { happen, nextMoment, oversleep, prune } from './reference/time.js'
import { isCommand, isInsert } from './steps.js'
import type { CommandStep, InsertStep, ScheduleSpec, Step, WorkStep } from './steps.js'

export const MILLS = 3
export const GROUPS = ['g', 'h']
export const NAMES = [
  'one',
  'two',
  'short',
  'unkept',
  WORKFLOW,
  ...Object.keys(LIMITS.inFlight),
  ...Object.keys(LIMITS.starts),
]

const COMMANDS = { cancel, pause, resume, retry, delete: remove }

type StepOf<Name extends Step['step']> = Omit<Extract<Step, { readonly step: Name }>, 'by'>

/** A fleet beside the model: each step happens in both, and then the whole store is compared. */
export class Pair {
  readonly #fleet: Fleet
  readonly #model: Model = emptyModel(START, MILLS, { unkept: 0, short: KEEP_MS.short })
  readonly #handlers = new Map<number, RunningHandler>()
  #ids = new KnownIds()
  #steps = 0

  constructor(fleet: Fleet) {
    this.#fleet = fleet
  }

  async run(step: Step): Promise<void> {
    await this.#step(step, this.#upMill(step.by))
    await this.#fleet.calm()
    await this.#drive()
    const by = this.#upMill(step.by)
    await this.#happen(by)
    const census = await this.#fleet.store(by).readCensus()
    noteChildren(this.#model, census, this.#ids)
    compare(this.#model, census, this.#ids)
    this.#steps += 1
    if (this.#steps % 3 === 0)
      await read({ model: this.#model, ids: this.#ids, mill: this.#fleet.mill(by), turn: this.#steps })
  }

  /** This mill, or the first, which never dies. */
  #upMill(by: number): number {
    return this.#model.mills[by] === 'up' ? by : 0
  }

  /** Upkeep may answer a workflow in hand, whose end is upkeep's business again. */
  async #happen(by: number): Promise<void> {
    do {
      happen(this.#model)
      await this.#upkeep(by)
    } while (await this.#drive())
  }

  /** What workers do with the workflows that they have in hand; false: nothing. */
  async #drive(): Promise<boolean> {
    const model = this.#model
    const inHand = model.attempts.filter(
      (attempt) => attempt.hasClaim && isWorking(model, attempt) && jobOf(model, attempt.job).workflow !== null,
    )
    if (inHand.length === 0) return false
    const census = await this.#fleet.store(0).readCensus()
    let isAny = false
    for (const { job: number, hasLeft } of inHand) {
      const job = jobOf(model, number)
      const before = [job.workflow?.rows.length, job.workflow?.nextNo, job.state].join()
      drive(model, job, recordedIn(census, this.#ids.id(number), model), hasLeft)
      isAny ||= before !== [job.workflow?.rows.length, job.workflow?.nextNo, job.state].join()
    }
    noteChildren(model, census, this.#ids)
    return isAny
  }

  async #upkeep(by: number): Promise<void> {
    await this.#fleet.calm()
    await this.#fleet.promote(by)
    while (this.#model.schedules.size > 0 && (await this.#fleet.fire(by))) await this.#fleet.promote(by)
    await this.#fleet.calm()
  }

  #step(step: Step, by: number): Promise<unknown> {
    if (isInsert(step)) return this.#insert(step, by)
    if (isCommand(step)) return this.#command(step, this.#fleet.mill(by), by)
    return step.step === 'transaction' ? this.#transaction(step, by) : this.#work(step, by)
  }

  #work(step: WorkStep, by: number): Promise<unknown> {
    switch (step.step) {
      case 'child':
        return this.#child(step)
      case 'begin':
        return this.#begin(by, step.queue)
      case 'finish':
        return this.#finish(this.#attemptOf(step.attempt), step.outcome)
      case 'run':
        return this.#begin(by, step.queue).then((attempt) => this.#finish(attempt, step.outcome))
      case 'settleIn':
        return this.#settleIn(step)
      case 'transact':
        return this.#transact(step)
      case 'loseClaim':
        return this.#loseClaim(by, step.queue)
      case 'kill':
        return this.#kill(step)
      case 'restart':
        return this.#restart(step.mill)
      case 'crashes':
        return this.#crashes(step)
      case 'loseLease':
        return this.#loseLease(step)
      case 'advance':
        return this.#advance(step.ms, by)
      case 'endStep':
        return this.#endStep(step)
      case 'oversleep':
        return this.#oversleep(step.ms)
      case 'prune':
        prune(this.#model)
        return this.#fleet.prune(by)
    }
  }

  #command(step: CommandStep, mill: Mill, by: number): Promise<unknown> {
    const model = this.#model
    switch (step.step) {
      case 'unschedule':
        return this.#same(
          () => unschedule(model, step.name, step.key),
          () => mill.unschedule(step.name, step.key),
        )
      case 'command':
        return this.#onJob(
          step.at,
          (job) => COMMANDS[step.verb](model, job),
          (id) => mill[step.verb](id),
        )
      case 'send':
        return this.#onJob(
          step.at,
          (job) => send(model, job, step.event, step.id),
          (id) => mill.send(id, EVENTS[step.event], undefined, step.id === null ? {} : { id: step.id }),
        )
      case 'workflowVerb':
        return this.#onJob(
          step.at,
          (job) => (step.verb === 'end' ? endWorkflow(model, job) : retry(model, job, 'fresh')),
          (id) => (step.verb === 'end' ? mill.cancel(id, { unwind: false }) : mill.retry(id, { fresh: true })),
        )
      case 'sequenceVerb':
        return this.#onJob(
          step.at,
          (job) => {
            if (job.state !== 'gone' && job.sequence === null) throw new Refused('E_INVALID_OPTIONS')
            return job.state !== 'gone' && commandSequence(model, job, step.verb)
          },
          (id) => mill.sequence(id)[step.verb](),
        )
      case 'edit': {
        const { inMs, ...rest } = step.change
        return this.#onJob(
          step.at,
          (job) => edit(model, job, step.change),
          (id) => mill.edit(id, { ...rest, ...(inMs === undefined ? {} : { in: inMs }) }),
        )
      }
      case 'addParents':
        return this.#addParents(step, mill)
      case 'pauseQueue':
        pauseQueue(model, step.queue, step.forMs)
        return step.forMs === null ? mill.queue(step.queue).pause() : mill.queue(step.queue).pauseUntil(step.forMs)
      case 'resumeQueue':
        resumeQueue(model, step.queue)
        return mill.queue(step.queue).resume()
      case 'group':
        return this.#same(
          () => commandGroup(model, step.group, step.verb),
          () => mill.group(step.group)[step.verb](),
        )
      case 'all':
        return this.#same(
          () => commandAll(model, step.verb, step.filter, step.page),
          () => commandPages(mill, step),
        )
      case 'recurring':
        return this.#recurring(step.id, step.spec, mill)
      case 'recurs':
        return this.#recurs(step, mill)
      case 'backfill': {
        const [from, to] = [model.now - step.backMs, model.now]
        return this.#same(
          () => backfill(model, step.id, from, to),
          () => mill.schedules.backfill(step.id, new Date(from), new Date(to)),
        )
      }
      case 'find':
        return this.#find(step, by)
    }
  }

  // ── Enqueue ────────────────────────────────────────────────────────────────

  async #insert(step: InsertStep, by: number): Promise<void> {
    const { inModel, inMill } = this.#inserts(step, by)
    this.#agree(modelAnswer(inModel), await answerOf(() => inMill(undefined)))
  }

  /** The calls of a caller's transaction see each other; a refused one leaves nothing, and the others go on. */
  async #transaction({ steps, commits }: StepOf<'transaction'>, by: number): Promise<void> {
    const before = { model: copyOf(this.#model), ids: this.#ids.copy() }
    const inserts = steps.map((step) => this.#inserts(step, by))
    const expected = inserts.map(({ inModel }) => modelAnswer(inModel))
    const answers = await this.#fleet.transact(
      inserts.map(({ inMill }) => inMill),
      commits,
    )
    for (const [index, answer] of answers.entries()) this.#agree(expected[index] as ModelAnswer, answer)
    if (commits) return
    Object.assign(this.#model, before.model)
    this.#ids = before.ids
  }

  #inserts(step: InsertStep, by: number): ReturnType<typeof insertOf> {
    return insertOf(step, { model: this.#model, ids: this.#ids, mill: this.#fleet.mill(by) })
  }

  async #child({ attempt: at, given }: StepOf<'child'>): Promise<void> {
    const attempt = this.#attemptOf(at)
    if (attempt === undefined) return
    const parts = { model: this.#model, ids: this.#ids, mill: undefined }
    const { name, ...options } = withParents(given, parts)
    const { ctx } = this.#handlers.get(attempt.number) as RunningHandler
    await this.#same(
      () => {
        if (!attempt.hasClaim) throw new Refused('E_LEASE_LOST')
        return [enqueue(this.#model, name, options, jobOf(this.#model, attempt.job))]
      },
      async () => [await ctx.enqueue(name, inputOf(options), millOptions(options, parts))],
    )
  }

  async #addParents({ at, parents, policy }: StepOf<'addParents'>, mill: Mill): Promise<void> {
    const numbers = knownJobs(parents, { model: this.#model, ids: this.#ids, mill })
    if (numbers.length === 0) return
    const after = numbers.map((number) => this.#ids.id(number) as string)
    await this.#onJob(
      at,
      (job) =>
        addParents(
          this.#model,
          job,
          numbers.map((number) => jobOf(this.#model, number)),
          policy,
        ),
      (id) => mill.edit(id, { after, onParentFailure: policy }),
    )
  }

  // ── Work ───────────────────────────────────────────────────────────────────

  /** A job of the queue begins in a mill, or none does. */
  async #begin(by: number, queue: string): Promise<Attempt | undefined> {
    const candidates = nextOf(this.#model, by, queue)
    if (isQuarantined(this.#model, by) || candidates.some((job) => mustWait(this.#model, by, job))) return undefined
    const found = await this.#fleet.begin(by, queue, handlersIn(this.#model, by).length === 0)
    const begun = found === undefined ? undefined : this.#ids.number(found.id)
    const expected = candidates.map(({ number }) => number)
    if (found === undefined || begun === undefined) {
      // A sequence without items that was reset and started has no handler to begin: its claim ends it.
      const plain = candidates.filter((job) => candidates.length === 1 || !isLimited(job))
      if (plain.length === 1 && endEmpty(this.#model, plain[0] as ModelJob)) return undefined
      const sure = candidates.filter((job) => roomFor(this.#model, job) === 'surely')
      assert.deepEqual(
        sure.map(({ number }) => number),
        [],
        'nothing began',
      )
      return undefined
    }
    assert.ok(expected.includes(begun), `job ${begun} began, not one of ${expected.join()}`)
    const attempt = begin(this.#model, by, jobOf(this.#model, begun))
    if (found.handler === undefined) return void (await this.#drive())
    this.#handlers.set(attempt.number, found.handler)
    return attempt
  }

  /** A step that acts in a mill that is up. */
  async #endStep({ at, end }: StepOf<'endStep'>): Promise<void> {
    const acting = this.#model.attempts.flatMap((attempt) => {
      const job = jobOf(this.#model, attempt.job)
      const isUp = attempt.hasClaim && !attempt.hasLeft && this.#model.mills[attempt.mill] === 'up'
      const addresses = isUp ? [...(job.workflow?.acts.keys() ?? [])].toSorted() : []
      return addresses.map((address) => ({ attempt, job, address }))
    })
    if (acting.length === 0) return
    const { attempt, job, address } = acting[at % acting.length] as (typeof acting)[number]
    endHeld(this.#model, job, address, end)
    await this.#fleet.endStep(attempt.mill, { id: this.#ids.id(job.number) as string, address }, end)
    await this.#drive()
  }

  async #oversleep(ms: number): Promise<void> {
    const until = this.#model.now + ms
    while (this.#model.now < until) {
      oversleep(this.#model, until)
      await this.#fleet.moveTo(this.#model.now)
      await this.#drive()
    }
  }

  async #finish(attempt: Attempt | undefined, outcome: Outcome): Promise<void> {
    if (attempt === undefined) return
    // A refused verb may have put back a copy of it.
    const present = this.#model.attempts.find(({ number }) => number === attempt.number) as Attempt
    const goesOn = finish(this.#model, present, outcome)
    const handler = this.#takeHandler(attempt)
    const next = await this.#fleet.endItem(attempt.mill, () => {
      if (outcome.kind === 'return') handler.returns()
      else if (outcome.kind === 'snooze') handler.throws(new Snooze(outcome.ms))
      else handler.throws(outcome.kind === 'abort' ? new Abort('planned') : new Error('planned'))
    })
    this.#goOn(present, goesOn, next)
  }

  /** The next item of a sequence begins, unless suspects wait for an empty process. */
  #goOn(before: Attempt, goesOn: boolean, next: RunningHandler | undefined): void {
    const job = jobOf(this.#model, before.job)
    if (goesOn && next === undefined && this.#model.jobs.some((each) => each.state === 'ready' && isSuspect(each)))
      return giveBack(this.#model, job)
    assert.equal(next?.ctx.id, goesOn ? this.#ids.id(job.number) : undefined, 'the next item')
    if (next === undefined) return
    assert.equal(next.ctx.sequence?.index, job.sequence?.done)
    this.#handlers.set(beginNext(this.#model, before).number, next)
  }

  /** The handler settles its job in a transaction of its own, and returns. */
  async #settleIn({ attempt: at, commits }: StepOf<'settleIn'>): Promise<void> {
    const attempt = this.#attemptOf(at)
    if (attempt === undefined || jobOf(this.#model, attempt.job).sequence !== null) return
    const handler = this.#takeHandler(attempt)
    const expected = modelAnswer(() => settleIn(this.#model, attempt, commits))
    this.#model.attempts = this.#model.attempts.filter((each) => each !== attempt)
    const [answer] = await this.#fleet.transact([(tx) => handler.ctx.settleIn(tx)], commits)
    this.#agree(expected, answer as Answer)
    if ('refused' in expected) handler.throws(new Error('planned'))
    else handler.returns()
    await this.#fleet.calm()
  }

  /** The handler writes a job and its own end in one transaction, and returns; a throw writes neither. */
  async #transact({ attempt: at, given, throws }: StepOf<'transact'>): Promise<void> {
    const attempt = this.#attemptOf(at)
    if (attempt === undefined || !attempt.hasClaim || jobOf(this.#model, attempt.job).sequence !== null) return
    const { inModel, inMill } = this.#inserts({ step: 'enqueue', given }, attempt.mill)
    const before = copyOf(this.#model)
    const expected = modelAnswer(() => {
      if (attempt.graceUntil !== null) throw new Refused('E_JOB_CANCELLED')
      const enqueued = inModel()
      if (throws) throw new Refused('E_PLANNED')
      settleIn(this.#model, attempt, true)
      return enqueued
    })
    if ('refused' in expected) Object.assign(this.#model, before)
    const handler = this.#handlers.get(attempt.number) as RunningHandler
    const work = (tx: unknown): unknown => {
      const inserting = inMill(tx) as Promise<unknown>
      const ended = (): Promise<unknown> => (throws ? Promise.reject(new Planned()) : inserting)
      if (!this.#fleet.isSync) return inserting.then(ended)
      if (throws) throw new Planned()
      enqueuing = inserting
      return undefined
    }
    let enqueuing: Promise<unknown> | undefined
    const answer = await answerOf(() =>
      handler.ctx.transaction(work as () => undefined).then((value) => enqueuing ?? value),
    )
    this.#agree(expected, answer)
    if ('refused' in expected) return this.#finish(attempt, { kind: 'throw' })
    this.#model.attempts = this.#model.attempts.filter((each) => each.number !== attempt.number)
    this.#takeHandler(attempt).returns()
    await this.#fleet.calm()
  }

  /** The answer of a claim is lost: the job is given back, and nothing has happened. */
  async #loseClaim(by: number, queue: string): Promise<void> {
    // A start that was claimed counts, also when its answer is lost: whether that happened is not known here.
    const isPaced = nextOf(this.#model, by, queue).some(({ name }) => name in LIMITS.starts)
    if (isQuarantined(this.#model, by) || isPaced) return
    await this.#fleet.loseClaim(by, queue, handlersIn(this.#model, by).length === 0)
  }

  #takeHandler(attempt: Attempt): RunningHandler {
    const handler = this.#handlers.get(attempt.number) as RunningHandler
    this.#handlers.delete(attempt.number)
    return handler
  }

  /** A handler in a mill that is up. */
  #attemptOf(at: number): Attempt | undefined {
    const there = this.#model.attempts.filter(
      ({ mill, hasLeft, job }) =>
        !hasLeft && this.#model.mills[mill] === 'up' && jobOf(this.#model, job).workflow === null,
    )
    return there[at % there.length]
  }

  async #kill({ mill, how }: StepOf<'kill'>): Promise<void> {
    if (this.#model.mills[mill] !== 'up') return
    if (how === 'frozen') await this.#fleet.freeze(mill)
    else if (how === 'stopped') await this.#fleet.stop(mill)
    else await this.#fleet.kill(mill, how === 'proven')
    leave(this.#model, mill, how)
  }

  /** A job that kills its process, as often as it is tried: the same one begins again, if it is still the first. */
  async #crashes({ mill, queue, times }: StepOf<'crashes'>): Promise<void> {
    for (let left = times; left > 0 && this.#model.mills[mill] === 'up'; left -= 1) {
      await this.#begin(mill, queue)
      await this.#kill({ step: 'kill', mill, how: 'proven' })
      await this.#restart(mill)
    }
  }

  /** A handler whose mill freezes for a lease returns when another process has its job, and does not know it yet. */
  async #loseLease({ mill, queue, outcome }: StepOf<'loseLease'>): Promise<void> {
    if (this.#model.mills[mill] !== 'up') return
    const attempt = await this.#begin(mill, queue)
    await this.#kill({ step: 'kill', mill, how: 'frozen' })
    await this.#advance(LEASE_MS, 0)
    await this.#finish(attempt, outcome)
  }

  async #restart(mill: number): Promise<void> {
    if (this.#model.mills[mill] !== 'gone') return
    restart(this.#model, mill)
    await this.#fleet.restart(mill)
  }

  /** From moment to moment, so that everything happens at its own time. */
  async #advance(ms: number, by: number): Promise<void> {
    const until = this.#model.now + ms
    while (this.#model.now < until) {
      this.#model.now = Math.min(nextMoment(this.#model), until)
      await this.#fleet.moveTo(this.#model.now)
      await this.#drive()
      await this.#happen(this.#upMill(by))
    }
  }

  // ── Schedules ──────────────────────────────────────────────────────────────

  #recurring(id: string, spec: ScheduleSpec, mill: Mill): Promise<void> {
    const { now } = this.#model
    const { given, fromMs, untilMs, everyMs, isCron, missed, overlap } = spec
    const parts = { model: this.#model, ids: this.#ids, mill }
    const { name, inMs: _, after: asked, ...rest } = withParents(given, parts)
    const after = overlap === 'wait' ? undefined : asked
    const options: Enqueue = { ...rest, ...(after === undefined ? {} : { after }) }
    const [fromAt, untilAt] = [fromMs === null ? null : now + fromMs, untilMs === null ? null : now + untilMs]
    const recurring: Recurring = { name, given: options, everyMs, isCron, missed, overlap, fromAt, untilAt }
    return this.#same(
      () => putSchedule(this.#model, id, recurring),
      async () => {
        await mill.recurring(
          id,
          name,
          inputOf(options),
          isCron ? `*/${everyMs / 60_000} * * * *` : { every: everyMs },
          {
            ...millOptions(options, parts),
            missed,
            overlap,
            ...(fromAt === null ? {} : { from: new Date(fromAt) }),
            ...(untilAt === null ? {} : { until: new Date(untilAt) }),
          },
        )
      },
    )
  }

  async #recurs({ id, verb }: StepOf<'recurs'>, mill: Mill): Promise<void> {
    const model = this.#model
    if (verb === 'runNow') {
      const expected = modelAnswer(() => runNow(model, id))
      const answer = await answerOf(() => mill.schedules.runNow(id))
      if ('value' in answer && answer.value !== undefined && 'value' in expected && expected.value !== undefined)
        return this.#ids.set(expected.value as number, (answer.value as { id: string }).id)
      return this.#agree(expected, answer)
    }
    await this.#same(
      () => ({ pause: pauseSchedule, resume: resumeSchedule, delete: deleteSchedule })[verb](model, id),
      () => (verb === 'delete' ? mill.deleteRecurring(id) : mill.schedules[verb](id)),
    )
    const ticks = (await mill.schedules.ticks(id)).map(({ at, outcome }) => `${at.getTime()} ${outcome}`)
    const ledger = (model.schedules.get(id)?.ledger ?? []).map(({ at, outcome }) => `${at} ${outcome}`)
    assert.deepEqual(ticks.toSorted(), ledger.toSorted())
  }

  // ── Both ───────────────────────────────────────────────────────────────────

  /** Every match once and in order, however small the pages are. */
  async #find({ filter, page, order }: StepOf<'find'>, by: number): Promise<void> {
    const store = this.#fleet.store(by)
    const found: string[] = []
    let cursor: number | null = null
    do {
      const query = { ...filter, order, limit: page, cursor }
      const answer: Awaited<ReturnType<typeof store.jobs.findJobs>> = await store.jobs.findJobs(query)
      assert.ok(answer.rows.length <= page, `a page of ${page} has ${answer.rows.length} rows`)
      found.push(...answer.rows.map(({ id }) => id))
      cursor = answer.cursor
    } while (cursor !== null)
    const matches = ({ state, queue, name, group, key }: ModelJob): boolean =>
      state !== 'gone' &&
      (filter.states?.includes(state) ?? true) &&
      (filter.queues?.includes(queue) ?? true) &&
      (filter.names?.includes(name) ?? true) &&
      (filter.group === undefined || filter.group === group) &&
      (filter.key === undefined || filter.key === key)
    const { jobs } = await store.readCensus()
    const inOrder = jobs.toSorted((one, other) => (order === 'oldest' ? one.seq - other.seq : other.seq - one.seq))
    const expected = inOrder.filter(({ id }) => matches(jobOf(this.#model, this.#ids.number(id) as number)))
    assert.deepEqual(
      found,
      expected.map(({ id }) => id),
    )
  }

  async #onJob<T>(at: number, inModel: (job: ModelJob) => T, inMill: (id: string) => Promise<T>): Promise<void> {
    const number = at % this.#model.jobs.length
    const id = this.#ids.id(number)
    if (id === undefined) return
    return this.#same(
      () => inModel(jobOf(this.#model, number)),
      () => inMill(id),
    )
  }

  /** Both do the same, or refuse by the same code. */
  async #same(inModel: () => unknown, inMill: () => unknown): Promise<void> {
    this.#agree(modelAnswer(inModel), await answerOf(inMill))
  }

  #agree(expected: ModelAnswer, answer: Answer): void {
    if ('error' in answer) {
      if (answer.error.code === undefined) throw answer.error
      return assert.deepEqual({ refused: answer.error.code }, expected)
    }
    if (!('value' in expected) || !isEnqueued(expected.value)) return assert.deepEqual(answer, expected)
    const handles = answer.value as readonly { readonly id: string; readonly isNew: boolean }[]
    for (const [index, { number, isNew }] of expected.value.entries()) {
      const handle = handles[index]
      assert.equal(handle?.isNew, isNew, `isNew of item ${index}`)
      if (isNew) this.#ids.set(number, handle?.id as string)
      else assert.equal(handle?.id, this.#ids.id(number) ?? handle?.id, 'the job that is there already')
    }
  }
}

/** Every page of a bulk, one call after the other. */
async function commandPages(mill: Mill, { verb, filter, page }: StepOf<'all'>): Promise<BulkCount> {
  const sum = { changed: 0, held: 0, moved: 0 }
  let cursor: string | undefined
  do {
    const result: BulkResult = await mill[verb](filter, { limit: page, ...(cursor === undefined ? {} : { cursor }) })
    sum.changed += result.changed
    sum.held += result.skipped.held
    sum.moved += result.skipped.moved
    cursor = result.cursor
  } while (cursor !== undefined)
  return sum
}

class Planned extends Error {
  readonly code = 'E_PLANNED'
}

type ModelAnswer = { readonly value: unknown } | { readonly refused: string }

function modelAnswer(verb: () => unknown): ModelAnswer {
  try {
    return { value: verb() }
  } catch (error) {
    if (error instanceof Refused) return { refused: error.code }
    throw error
  }
}

function isEnqueued(value: unknown): value is readonly Enqueued[] {
  return Array.isArray(value)
}

import { StoreError } from '../../errors.js'
import { isThenable } from '../../job/definition/schema.js'
import type { Hint, LeaseStore, Store } from '../../store/store.js'
import type { Transact, TransactionStore } from '../../store/transaction-store.js'
import type { Random } from './random.js'
import type { SimClock } from './sim-clock.js'
import type { SimProcess } from './sim-process.js'

/** The verb whose beats come from a thread, so that the faults of the event loop spare it. */
export const START_HEARTBEAT = 'startHeartbeat' satisfies keyof LeaseStore

/** How likely each fault is, at each seam where it can strike. */
export interface FaultRates {
  /** The process dies: at a store call before or after it took effect, or at a handler's start or end. */
  readonly crash: number
  /** A store call fails and has done nothing. */
  readonly failBefore: number
  /** A store call fails though it took effect: the reply was lost. */
  readonly failAfter: number
  /** A store call's reply takes up to two seconds. */
  readonly slow: number
  /** A rescuer is held up for up to two seconds between its read of the dead workers and its write: they may beat again meanwhile. */
  readonly lateRescue: number
  readonly loseHint: number
  readonly lateHint: number
  /** A process outside of the fleet holds the store for up to 1.2 leases: it can be read, and no write gets through. */
  readonly hold: number
  /** The whole process stops for up to three leases. */
  readonly freeze: number
  /** Its event loop is blocked for up to three leases, while its heartbeat thread goes on. */
  readonly block: number
  /** A store call fails, before or after it took effect, and says that the whole store cannot be reached. */
  readonly unreachable: number
  /** A store call's reply takes from half a lease to a whole one. */
  readonly late: number
  /** A store call takes effect, and its process is suspended until its lease is lost. */
  readonly suspend: number
  /** The database's wall clock is set to up to a day before or after the true time, at some moment of each second. */
  readonly clockStep: number
}

export const NO_FAULTS: FaultRates = {
  crash: 0,
  failBefore: 0,
  failAfter: 0,
  slow: 0,
  lateRescue: 0,
  loseHint: 0,
  lateHint: 0,
  hold: 0,
  freeze: 0,
  block: 0,
  unreachable: 0,
  late: 0,
  suspend: 0,
  clockStep: 0,
}
export const ALL_FAULTS: FaultRates = {
  crash: 0.006,
  failBefore: 0.02,
  failAfter: 0.01,
  slow: 0.03,
  lateRescue: 0.2,
  loseHint: 0.2,
  lateHint: 0.2,
  hold: 0.001,
  freeze: 0.003,
  block: 0.004,
  unreachable: 0.01,
  late: 0.004,
  suspend: 0.001,
  clockStep: 0.01,
}

export type FaultKind = keyof FaultRates

/** Drawn from a stream of their own: histories without them are what they would be without these faults. */
const SEAM_FAULTS: ReadonlySet<FaultKind> = new Set(['unreachable', 'late', 'suspend'])
/** For how many leases a process is suspended: other workers have then declared it dead. */
const SUSPEND_LEASES = 2.5

/** How long an answer can be on its way. */
export const SLOW_MAX_MS = 2_000

/** For how many leases the store can be held. */
const HOLD_MAX_LEASES = 1.2

/** How far from the true time the database's clock is set. */
const CLOCK_MIN_MS = 60_000
const CLOCK_MAX_MS = 86_400_000
/** How far behind the latest time it has shown it may be when faults stop: what is due is to drain, and a day has many polls. */
const BEHIND_MAX_MS = 60_000

/** How a call fails that took effect. */
export const REPLY_LOST = 'its reply was lost'

/** Decides at every seam whether a fault strikes; none does once `stop` was called. */
export class Faults {
  readonly #rates: FaultRates
  readonly #random: Random
  readonly #onFault: (kind: FaultKind, process: SimProcess, where: string) => void
  /** Of its own: histories without a step are what they would be without this fault. */
  readonly #clockRandom: Random
  /** The same for the faults of `SEAM_FAULTS`. */
  readonly #seamRandom: Random
  #stopped = false

  constructor(
    rates: FaultRates,
    random: Random,
    onFault: (kind: FaultKind, process: SimProcess, where: string) => void,
  ) {
    this.#rates = rates
    this.#random = random
    this.#clockRandom = random.fork('clock')
    this.#seamRandom = random.fork('seams')
    this.#onFault = onFault
  }

  /** No fault strikes from here on, so that everything must recover. */
  stop(): void {
    this.#stopped = true
  }

  strikes(kind: FaultKind, process: SimProcess, where: string): boolean {
    const random = SEAM_FAULTS.has(kind) ? this.#seamRandom : this.#random
    if (this.#stopped || !process.alive || !random.chance(this.#rates[kind])) return false
    if (kind !== 'loseHint' && kind !== 'lateHint') process.noteStoreFailure()
    this.#onFault(kind, process, where)
    return true
  }

  /** A seam of a process: it may die, freeze or be blocked here. False when it is no more. */
  seam(process: SimProcess, where: string, leaseMs: number): boolean {
    if (!process.mayCrash) return true
    if (this.strikes('crash', process, where)) process.die()
    else if (this.strikes('freeze', process, where)) process.freeze(this.#random.next() * 3 * leaseMs)
    else if (this.strikes('block', process, where)) process.block(this.#random.next() * 3 * leaseMs)
    return process.alive
  }

  /** By how much the clock is set at this moment; 0: it is not. */
  clockStepMs(clock: SimClock): number {
    const random = this.#clockRandom
    if (this.#stopped || !random.chance(this.#rates.clockStep)) return 0
    const awayMs = CLOCK_MIN_MS * (CLOCK_MAX_MS / CLOCK_MIN_MS) ** random.next()
    return Math.round(random.chance(0.7) ? -awayMs : awayMs) - clock.offsetMs
  }

  /** How long it is until the clock may be set next: a second on average. Undefined: it never is. */
  clockWaitMs(): number | undefined {
    return this.#stopped || this.#rates.clockStep === 0 ? undefined : this.#clockRandom.next() * 2_000
  }

  /** An operator sets the clock right, or nearly so. */
  mendClock(clock: SimClock): void {
    const behindMs = Math.round(this.#clockRandom.next() * BEHIND_MAX_MS)
    if (clock.behindMs > behindMs) clock.step(Math.round(clock.behindMs - behindMs))
  }

  delayMs(most: number): number {
    return this.#random.next() * most
  }

  /** A number in [0, 1) for a fault of `SEAM_FAULTS`. */
  share(): number {
    return this.#seamRandom.next()
  }
}

/** What never comes. A dead process waits for it, and for nothing else. */
export function never<T>(): Promise<T> {
  return new Promise<T>(() => undefined)
}

/**
 * A store seen through a bad connection: every verb may be slow, fail before or after, or be the last thing a process does.
 * `hold` keeps all processes from writing for so long.
 */
export function faultyStore(
  inner: Store,
  process: SimProcess,
  faults: Faults,
  leaseMs: number,
  hold: (ms: number) => void,
): Store {
  const call = async (verb: string, run: () => Promise<unknown>): Promise<unknown> => {
    if (!faults.seam(process, `before ${verb}`, leaseMs)) return never()
    await thaw(process)
    if (faults.strikes('hold', process, verb)) hold(faults.delayMs(HOLD_MAX_LEASES * leaseMs))
    if (verb === 'rescueJobs' && faults.strikes('lateRescue', process, verb))
      await waitForStore(process, faults.delayMs(SLOW_MAX_MS))
    if (faults.strikes('failBefore', process, verb))
      throw new StoreError('E_STORE', `${verb} failed in the simulation; nothing was done`)
    const isUnreachable = faults.strikes('unreachable', process, verb)
    if (isUnreachable && faults.share() < 0.5) throw unreachable(verb, 'nothing was done')
    const result = await run().catch((error: unknown) => (process.alive ? Promise.reject(error) : never()))
    if (!faults.seam(process, `after ${verb}`, leaseMs)) return never()
    await thaw(process)
    if (faults.strikes('slow', process, verb)) {
      await waitForStore(process, faults.delayMs(SLOW_MAX_MS))
      process.noteLate()
    }
    if (isUnreachable) throw unreachable(verb, REPLY_LOST)
    const late = answerLate(process, faults, verb, leaseMs)
    if (late !== undefined) await late
    if (faults.strikes('failAfter', process, verb))
      throw new StoreError('E_STORE', `${verb} failed in the simulation; ${REPLY_LOST}`)
    return process.alive ? result : never()
  }
  const bad = new Proxy(inner, {
    get(target, name) {
      if (name === 'jobs' || name === 'leases' || name === 'queues' || name === 'changes') return bad
      if (name === 'schedules') return faultyRole(target.schedules, call)
      if (name === 'groups') return faultyRole(target.groups, call)
      if (name === 'sequences') return faultyRole(target.sequences, call)
      if (name === 'workflows') return faultyRole(target.workflows, call)
      if (name === 'transactions') return badTransactions(target.transactions, process, faults, call)
      if (name === 'onHint')
        return (callback: (hint: Hint) => void) => target.changes.onHint((hint) => hinted(hint, callback))
      const value: unknown = Reflect.get(target, name, target)
      if (typeof value !== 'function' || name === START_HEARTBEAT || name === 'close')
        return typeof value === 'function' ? value.bind(target) : value
      return (...given: unknown[]) =>
        call(String(name), () => (value as (...a: unknown[]) => Promise<unknown>).apply(target, given))
    },
  })
  const hinted = (hint: Hint, callback: (hint: Hint) => void): void => {
    if (faults.strikes('loseHint', process, 'hint')) return
    if (faults.strikes('lateHint', process, 'hint'))
      process.world.timers.after(faults.delayMs(3_000), () => callback(hint))
    else callback(hint)
  }
  return bad
}

function unreachable(verb: string, outcome: string): StoreError {
  return new StoreError('E_STORE_UNREACHABLE', `${verb} could not reach the simulated store; ${outcome}`)
}

/** The call has taken effect; its answer comes after half a lease, or after the lease is lost. Undefined: it comes now. */
function answerLate(process: SimProcess, faults: Faults, verb: string, leaseMs: number): Promise<void> | undefined {
  if (faults.strikes('late', process, verb))
    return waitForStore(process, leaseMs * (0.5 + faults.share() / 2)).then(() => process.noteLate())
  if (!process.mayCrash || !faults.strikes('suspend', process, verb)) return undefined
  process.freeze(leaseMs * SUSPEND_LEASES)
  return thaw(process)
}

/** A role whose verbs all return a promise. */
function faultyRole<Role extends object>(
  inner: Role,
  call: (verb: string, run: () => Promise<unknown>) => Promise<unknown>,
): Role {
  return new Proxy(inner, {
    get(target, name) {
      const verb = Reflect.get(target, name, target) as (...given: unknown[]) => Promise<unknown>
      return (...given: unknown[]) => call(String(name), () => verb.apply(target, given))
    },
  })
}

/**
 * Writing in transactions, through the same bad connection. A process may also die between the work and the commit, which
 * takes the work along; what is written within a caller's own call can fail, and cannot wait.
 */
function badTransactions(
  inner: TransactionStore,
  process: SimProcess,
  faults: Faults,
  call: (verb: string, run: () => Promise<unknown>) => Promise<unknown>,
): TransactionStore {
  const failing = (verb: string): void => {
    if (faults.strikes('failBefore', process, verb))
      throw new StoreError('E_STORE', `${verb} failed in the simulation; nothing was done`)
  }
  const crashing = <T>(request: Transact<T>): Transact<T> => ({
    ...request,
    work: (tx) => {
      const value = request.work(tx)
      const survive = (): void => {
        if (process.mayCrash && faults.strikes('crash', process, 'inside transact')) process.die()
        if (!process.alive) throw new StoreError('E_STORE', 'the process died before the commit')
      }
      if (isThenable(value)) return value.then((done) => (survive(), done)) as T
      survive()
      return value
    },
  })
  return {
    answersLater: inner.answersLater,
    insertJobsIn: (tx, jobs, options) => {
      failing('insertJobsIn')
      return inner.insertJobsIn(tx, jobs, options)
    },
    settleJobIn: (tx, settled) => {
      failing('settleJobIn')
      return inner.settleJobIn(tx, settled)
    },
    insertSequenceIn: (tx, sequence) => {
      failing('insertSequenceIn')
      return inner.insertSequenceIn(tx, sequence)
    },
    sendEventIn: (tx, event) => {
      failing('sendEventIn')
      return inner.sendEventIn(tx, event)
    },
    sealGroupIn: (tx, seal) => {
      failing('sealGroupIn')
      return inner.sealGroupIn(tx, seal)
    },
    guarded: (tx, run) => inner.guarded(tx, run),
    transact: <T>(request: Transact<T>) => call('transact', () => inner.transact(crashing(request))) as Promise<T>,
  }
}

/** A process that froze at a seam continues there when it wakes. */
export function thaw(process: SimProcess): Promise<void> | undefined {
  return process.isHeld ? waitInside(process, 0) : undefined
}

function waitForStore(process: SimProcess, ms: number): Promise<void> {
  process.noteWait(ms)
  return waitInside(process, ms)
}

/** A wait of a process's own: it does not end once the process is dead. */
export function waitInside(process: SimProcess, ms: number): Promise<void> {
  return new Promise((resolve) => process.world.timers.after(ms, resolve))
}

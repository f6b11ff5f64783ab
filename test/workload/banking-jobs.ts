import { job } from '../../src/job/definition/define.js'
import type { AnyJob } from '../../src/job/definition/define.js'
import type { Context } from '../../src/job/attempt/context.js'
import type { Handle } from '../../src/job/enqueue.js'
import { StoreError } from '../../src/errors.js'
import { REPLY_LOST } from '../../src/testing/simulation/faults.js'
import { writeWork } from '../../src/store/sqlite/verbs/census.js'
import type { SqliteDatabase } from '../../src/store/sqlite/connection/driver.js'
import type { ProcessState, TenantPayload } from './shared-state.js'
import { inContext, isFirstRun } from './shared-state.js'

/** The fate of the transaction in which a banker writes its work and its settlement. */
export const FATES = [
  'commits',
  'rolls back',
  'dies before its commit',
  'dies after its commit',
  'throws afterwards',
  'sleeps before it',
] as const
export type Fate = (typeof FATES)[number]

/** Jobs whose work and settlement are one transaction. */
export const BANKING: ReadonlySet<string> = new Set(['banker', 'scenario'])

type Banked = TenantPayload & { readonly ms: number; readonly fate: Fate; readonly spawns: boolean }

/** One opens its transaction by `ctx.transaction`, the other settles in one of its own by `ctx.settleIn`. */
export function bankingJobs(state: ProcessState): AnyJob[] {
  const { sim, wait } = state
  const { engine } = sim.database
  const { answersLater } = engine
  const retry = { limit: 8, backoff: { start: 100, max: 1_000 } }
  const banker = job('banker', {
    run: inContext(state, async (p: Banked, ctx) => {
      await wait(p.ms)
      const business = new Business(state, p, ctx)
      await business.begin()
      try {
        await ctx.transaction((tx: SqliteDatabase) =>
          answersLater ? business.writeLater(tx, () => undefined) : business.write(tx, () => undefined),
        )
      } catch (thrown) {
        await business.undone(thrown)
        throw thrown
      }
      await business.committed()
    }),
    retry,
  })
  const scenario = job('scenario', {
    run: inContext(state, async (p: Banked, ctx) => {
      await wait(p.ms)
      const business = new Business(state, p, ctx)
      await business.begin()
      try {
        if (answersLater)
          await engine.inTransaction(false, (tx) => business.writeLater(tx as SqliteDatabase, () => ctx.settleIn(tx)))
        else sim.transaction((tx) => business.write(tx, () => void ctx.settleIn(tx)))
      } catch (thrown) {
        await business.undone(thrown)
        if (!(thrown instanceof OnPurpose)) throw thrown
        // It returns anyway, and the worker detects that nothing was settled.
        return sim.runs.failed(ctx.id)
      }
      await business.committed()
    }),
    retry,
  })
  return [banker, scenario] as AnyJob[]
}

/** The work of one attempt: a row and perhaps a child, in one transaction with the job's settlement. */
class Business {
  readonly #state: ProcessState
  readonly #banked: Banked
  readonly #ctx: Context
  readonly #fate: Fate
  readonly #children: Promise<Handle<unknown>>[] = []

  constructor(state: ProcessState, banked: Banked, ctx: Context) {
    this.#state = state
    this.#banked = banked
    this.#ctx = ctx
    this.#fate = isFirstRun(state, ctx) ? banked.fate : 'commits'
  }

  /** A process that sleeps for longer than its lease resumes a job that another worker may run by now. */
  async begin(): Promise<void> {
    const { sim, process } = this.#state
    if (this.#fate === 'sleeps before it') await sim.sleep(process)
  }

  /** A throw rolls everything back. */
  write(tx: SqliteDatabase, settle: () => void): void {
    const { tenant, spawns } = this.#banked
    writeWork(tx, this.#ctx.id)
    if (spawns) this.#children.push(this.#ctx.enqueue('steady', { ms: 5, n: 0, tenant }, { tx }))
    settle()
    if (this.#fate === 'rolls back' || this.#fate === 'dies before its commit') throw new OnPurpose()
  }

  /** The same where each write has to be awaited. */
  async writeLater(tx: SqliteDatabase, settle: () => unknown): Promise<void> {
    const { tenant, spawns } = this.#banked
    const { sim } = this.#state
    await sim.database.engine.writeWork(tx, this.#ctx.id)
    if (spawns) {
      const child = await this.#ctx.enqueue('steady', { ms: 5, n: 0, tenant }, { tx })
      this.#children.push(Promise.resolve(child))
    }
    await settle()
    if (this.#fate === 'rolls back' || this.#fate === 'dies before its commit') throw new OnPurpose()
  }

  async committed(): Promise<void> {
    const { sim, process } = this.#state
    for (const child of this.#children) sim.acknowledged.add((await child).id)
    sim.count(`transactions: ${this.#fate}`)
    if (this.#fate === 'dies after its commit') await sim.kill(process)
    if (this.#fate === 'throws afterwards') throw new Error('thrown when all was done')
  }

  async undone(thrown: unknown): Promise<void> {
    const { sim, process } = this.#state
    // The outcome is unknown.
    if (thrown instanceof StoreError && thrown.message.includes(REPLY_LOST)) return
    for (const child of this.#children) sim.undone.add((await child).id)
    if (!(thrown instanceof OnPurpose)) return
    sim.count(`transactions: ${this.#fate}`)
    if (this.#fate === 'dies before its commit') await sim.kill(process)
  }
}

class OnPurpose extends Error {}

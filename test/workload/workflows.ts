import { MillraceError } from '../../src/errors.js'
import { event, job, workflow } from '../../src/index.js'
import type { Job, Mill, Work } from '../../src/index.js'
import type { AnyJob } from '../../src/job/definition/define.js'
import { isFinal } from '../../src/job/rules/states.js'
import { BrokenPromise } from '../../src/testing/checkers/broken-promise.js'
import type { Random } from '../../src/testing/simulation/random.js'
import type { SimProcess } from '../../src/testing/simulation/sim-process.js'
import type { Simulation } from '../../src/testing/simulation/simulation.js'

/** One operation of a simulated order. */
export interface Operation {
  readonly does: 'step' | 'fails once' | 'fails' | 'kills' | 'sleep' | 'wait' | 'call' | 'race'
  readonly ms: number
}

const SHARES: readonly (readonly [share: number, Operation['does']])[] = [
  [34, 'step'],
  [8, 'fails once'],
  [3, 'fails'],
  [3, 'kills'],
  [18, 'sleep'],
  [18, 'wait'],
  [10, 'call'],
  [6, 'race'],
]

type Parcel = Job<{ ms: number }, number>

const poked = event<number>('poked')

/** The orders of a simulated fleet, what their acts returned, and the events that were sent. */
export class Orders {
  readonly #sim: () => Simulation
  /** The payloads of acknowledged events, by workflow, as the store has them. */
  readonly sent = new Map<string, string[]>()
  readonly #times = new Map<string, number>()
  /** The value that an address gave to its body, by workflow and run. */
  readonly #given = new Map<string, string>()
  #tokens = 0

  constructor(sim: () => Simulation) {
    this.#sim = sim
  }

  jobs(process: SimProcess): readonly AnyJob[] {
    const order = workflow('order', {
      run: (plan: readonly Operation[], w: Work) => this.#run(process, plan, w, parcel),
      retry: { limit: 1, backoff: { start: 200, factor: 1, max: 200 } },
    })
    const parcel: Parcel = job('parcel', {
      run: async ({ ms }: { ms: number }) => {
        await this.#sim().wait(process, ms)
        return this.token()
      },
      keep: 'none',
    })
    return [order as AnyJob, parcel as AnyJob]
  }

  token(): number {
    return (this.#tokens += 1)
  }

  async #run(process: SimProcess, plan: readonly Operation[], w: Work, parcel: Parcel): Promise<number> {
    try {
      for (const [index, operation] of plan.entries()) {
        const value = await this.#do(process, operation, `o${index}`, w, parcel)
        this.#check(w, `o${index}`, value)
      }
      return plan.length
    } finally {
      await w.cleanup((own) => own.step('undo', () => this.#sim().count('workflows: cleaned up')))
    }
  }

  /** Live or on replay, in any process: an operation gives its body what was recorded. */
  #check(w: Work, name: string, value: unknown): void {
    const of = `${w.id} ${w.run} ${name}`
    const given = JSON.stringify(value) ?? 'nothing'
    const before = this.#given.get(of)
    if (before !== undefined && before !== given && !this.#sim().revivals.has(w.id))
      this.#sim().fail(new BrokenPromise(`LW9: ${name} of workflow ${w.id} gave ${before}, and then ${given}`))
    this.#given.set(of, given)
  }

  #do(process: SimProcess, { does, ms }: Operation, name: string, w: Work, parcel: Parcel): Promise<unknown> {
    switch (does) {
      case 'sleep':
        return w.sleep(ms, { name })
      case 'wait':
        return w.waitFor(poked, { timeout: ms * 3, name }).catch((error: MillraceError) => {
          if (error.code !== 'E_TIMEOUT') throw error
          return 'late'
        })
      case 'call':
        return w.call(parcel, { ms }, { name }).catch((error: MillraceError) => {
          // Nothing waited for it between the end of the workflow and a retry, and it keeps nothing.
          const mayBeGone = error.code === 'E_JOB_GONE' && this.#sim().revivals.has(w.id)
          if ((error.code === 'E_STEP_RESULT' || error.code === 'E_JOB_GONE') && !mayBeGone)
            this.#sim().fail(new BrokenPromise(`LW43: a parcel was done, and ${name} of ${w.id} got ${error.code}`))
          throw error
        })
      case 'race':
        return w.race({
          poke: (own) => own.waitFor(poked, { name }),
          late: (own) => own.sleep(ms, { name }),
        })
      case 'fails':
      case 'fails once':
      case 'kills':
      case 'step':
        return w.step(name, (s) => this.#act(process, does, `${s.id}`, ms))
    }
  }

  async #act(process: SimProcess, does: Operation['does'], id: string, ms: number): Promise<number> {
    const times = (this.#times.get(id) ?? 0) + 1
    this.#times.set(id, times)
    await this.#sim().wait(process, ms)
    if (does === 'kills' && times === 1) await this.#sim().kill(process)
    if (does === 'fails' || (does === 'fails once' && times === 1)) throw new Error('not done')
    return this.token()
  }
}

/** The app's side: makes orders and commands them at random, and at the end lets all of them end. */
export async function runOrders(
  sim: Simulation,
  mill: Mill,
  client: SimProcess,
  random: Random,
  orders: Orders,
  steps: number,
): Promise<void> {
  const app = new OrderApp(sim, mill, random, orders)
  for (let left = steps; left > 0; left -= 1) {
    await app.attempt(() => app.step())
    await sim.wait(client, random.next() * (random.chance(0.3) ? 1_200 : 120))
  }
  for (let round = 0; round < 60; round += 1) {
    let open = 0
    await app.attempt(async () => void (open = await app.goOn()))
    if (open === 0 && round > 2) return
    await sim.wait(client, 500)
  }
}

class OrderApp {
  readonly #sim: Simulation
  readonly #mill: Mill
  readonly #random: Random
  readonly #orders: Orders
  readonly #all: string[] = []

  constructor(sim: Simulation, mill: Mill, random: Random, orders: Orders) {
    this.#sim = sim
    this.#mill = mill
    this.#random = random
    this.#orders = orders
  }

  /** The store may fail at any call. */
  async attempt(work: () => Promise<void>): Promise<void> {
    try {
      await work()
    } catch (error) {
      if (!(error instanceof MillraceError)) throw error
      this.#sim.count(`workflows: refused: ${error.code}`)
    }
  }

  async step(): Promise<void> {
    const random = this.#random
    const id = this.#all.length === 0 ? undefined : random.pick(this.#all)
    if (id === undefined || random.chance(0.2)) return this.#make()
    if (random.chance(0.45)) return this.#send(id)
    if (random.chance(0.05)) return this.#sim.deploy(random, random.pick([0, 200]))
    if (random.chance(0.15)) return this.#look(id)
    return this.#command(id, random.pick(['cancel', 'pause', 'resume', 'resume', 'retry', 'end'] as const))
  }

  async #make(): Promise<void> {
    const random = this.#random
    const plan = Array.from({ length: random.int(1, 8) }, () => this.#operation())
    const { id } = await this.#mill.enqueue('order', plan)
    this.#sim.acknowledged.add(id)
    this.#all.push(id)
    this.#sim.count('workflows: made')
  }

  #operation(): Operation {
    const random = this.#random
    let dice = random.int(0, 99)
    const [, does] = SHARES.find(([share]) => (dice -= share) < 0) ?? [0, 'step' as const]
    return { does, ms: random.chance(0.3) ? random.int(300, 1_500) : random.int(0, 60) }
  }

  async #send(id: string): Promise<void> {
    const token = this.#orders.token()
    const isSent = await this.#mill.send(id, poked, token, this.#random.chance(0.3) ? { id: `e${token}` } : {})
    this.#sim.count(isSent ? 'workflows: sent' : 'workflows: not sent')
    if (isSent) this.#orders.sent.set(id, [...(this.#orders.sent.get(id) ?? []), JSON.stringify(token)])
  }

  async #command(id: string, verb: 'cancel' | 'pause' | 'resume' | 'retry' | 'end'): Promise<void> {
    if (verb === 'cancel' || verb === 'end') this.#sim.cancelled.add(id)
    if (verb === 'retry') {
      this.#sim.revivals.set(id, (this.#sim.revivals.get(id) ?? 0) + 1)
      this.#sim.runs.allow(id)
    }
    const isDone = verb === 'end' ? this.#mill.cancel(id, { unwind: false }) : this.#mill[verb](id)
    if (await isDone) this.#sim.count(`workflows: ${verb}`)
  }

  async #look(id: string): Promise<void> {
    const record = await this.#mill.get(id)
    const steps = await this.#mill.steps(id, { limit: 1_000 })
    if (record === undefined || record.workflow === undefined) return
    if (steps.length < record.workflow.answers && !this.#sim.revivals.has(id))
      this.#sim.fail(
        new BrokenPromise(`LW66: workflow ${id} says ${record.workflow.answers} answers, and shows ${steps.length}`),
      )
    this.#sim.count(`workflows: seen ${record.state}`)
  }

  /** Resumes what is paused; returns how many have not ended. */
  async goOn(): Promise<number> {
    let open = 0
    for await (const { id, state } of this.#mill.find({ job: 'order' })) {
      if (isFinal(state) || state === 'parked') continue
      open += 1
      if (state === 'paused' || state === 'running') await this.#mill.resume(id)
    }
    return open
  }
}

import { Abort, Snooze } from '../../src/job/attempt/control-errors.js'
import { job } from '../../src/job/definition/define.js'
import type { AnyJob } from '../../src/job/definition/define.js'
import type { Context } from '../../src/job/attempt/context.js'
import { MillraceError } from '../../src/errors.js'
import type { Sequence } from '../../src/client/sequence/sequence.js'
import type { Mill } from '../../src/mill/mill-type.js'
import { BrokenPromise } from '../../src/testing/checkers/broken-promise.js'
import type { ItemOrigin } from '../../src/testing/checkers/sequence-checks.js'
import { isFinal } from '../../src/job/rules/states.js'
import type { Random } from '../../src/testing/simulation/random.js'
import { recordingMill } from '../../src/testing/simulation/recording-mill.js'
import type { SimProcess } from '../../src/testing/simulation/sim-process.js'
import type { Simulation } from '../../src/testing/simulation/simulation.js'
import type { Running } from '../../src/worker/attempt/running.js'

/** An item of the simulated archive: how long it takes, and how it behaves. */
export interface ArchiveItem {
  readonly ms: number
  readonly behaviour:
    | 'archives'
    | 'fails once'
    | 'fails'
    | 'aborts'
    | 'snoozes'
    | 'kills'
    | 'sleeps'
    | 'ignores its signal'
}

const BEHAVIOURS: readonly (readonly [share: number, ArchiveItem['behaviour']])[] = [
  [67, 'archives'],
  [10, 'fails once'],
  [3, 'fails'],
  [2, 'aborts'],
  [5, 'snoozes'],
  [3, 'kills'],
  [3, 'sleeps'],
  [7, 'ignores its signal'],
]

/** The results that handlers returned, by their numbers, and what items have done before. */
export class Archive {
  readonly #sim: () => Simulation
  readonly #origins: ItemOrigin[] = []
  readonly #times = new Map<string, number>()

  constructor(sim: () => Simulation) {
    this.#sim = sim
  }

  jobs(process: SimProcess): readonly AnyJob[] {
    const archive = job('archive', {
      run: (item: ArchiveItem, ctx: Context) => this.#run(process, item, ctx),
      retry: { limit: 2, backoff: { start: 200, factor: 1, max: 200 } },
      timeout: 5_000,
    })
    const side = job('side', (p: { ms: number }) => this.#sim().wait(process, p.ms))
    return [archive, side]
  }

  readonly originOf = (value: string): ItemOrigin | undefined => {
    const { token } = JSON.parse(value) as { token?: number }
    return token === undefined ? undefined : this.#origins[token]
  }

  async #run(process: SimProcess, { ms, behaviour }: ArchiveItem, ctx: Context): Promise<{ token: number }> {
    const sim = this.#sim()
    const { claimed } = ctx as unknown as Running
    const sequence = claimed.sequence
    if (sequence === undefined) throw new Error('the archive runs as a sequence')
    const { run, index } = sequence
    this.#checkPrevious(ctx, index, run)
    const name = `${ctx.id} ${run} ${index}`
    const times = (this.#times.get(name) ?? 0) + 1
    this.#times.set(name, times)
    if (behaviour !== 'ignores its signal') ctx.signal.throwIfAborted()
    await sim.wait(process, ms)
    if (behaviour === 'kills' && times === 1) await sim.kill(process)
    if (behaviour === 'sleeps' && times === 1) await sim.sleep(process)
    if (behaviour === 'snoozes' && times === 1) throw new Snooze(300)
    if (behaviour === 'aborts' && times === 1) throw new Abort('this item cannot be archived')
    if (behaviour === 'fails' || (behaviour === 'fails once' && times === 1)) throw new Error('not archived')
    if (behaviour !== 'ignores its signal' && behaviour !== 'sleeps') ctx.signal.throwIfAborted()
    else if (ctx.signal.aborted) sim.count('sequences: a result in spite of the signal')
    this.#origins.push({ id: ctx.id, run, index, fence: claimed.fence })
    return { token: this.#origins.length - 1 }
  }

  /** The result that an item is given is that of the item before it, in the same run. */
  #checkPrevious(ctx: Context, index: number, run: number): void {
    const previous = ctx.sequence?.previous as { readonly token: number } | undefined
    const origin = previous === undefined ? undefined : this.#origins[previous.token]
    const fits = index === 0 ? previous === undefined : origin?.index === index - 1 && origin.run === run
    if (!fits)
      this.#sim().fail(
        new BrokenPromise(`G2: item ${index} of ${ctx.id} was given ${JSON.stringify(origin)} as the result before it`),
      )
  }
}

/** The app's side: makes sequences and commands them at random, and at the end lets all of them end. */
export async function runSequences(
  sim: Simulation,
  mill: Mill,
  client: SimProcess,
  random: Random,
  steps: number,
): Promise<void> {
  const app = new SequenceApp(sim, recordingMill(mill, sim), client, random)
  for (let left = steps; left > 0; left -= 1) {
    await app.attempt(() => app.step())
    await sim.wait(client, random.next() * (random.chance(0.3) ? 1_500 : 120))
  }
  await app.endAll()
}

class SequenceApp {
  readonly #sim: Simulation
  readonly #mill: Mill
  readonly #client: SimProcess
  readonly #random: Random
  readonly #all: Sequence[] = []

  constructor(sim: Simulation, mill: Mill, client: SimProcess, random: Random) {
    this.#sim = sim
    this.#mill = mill
    this.#client = client
    this.#random = random
  }

  /** The store may fail at any call. */
  async attempt(work: () => Promise<void>): Promise<void> {
    try {
      await work()
    } catch (error) {
      if (!(error instanceof MillraceError)) throw error
      this.#sim.count(`sequences: refused: ${error.code}`)
    }
  }

  async step(): Promise<void> {
    const random = this.#random
    const sequence = this.#all.length === 0 ? undefined : random.pick(this.#all)
    if (sequence === undefined || random.chance(0.12)) return this.#make()
    if (random.chance(0.1)) return void (await this.#mill.enqueue('side', { ms: random.int(0, 400) }))
    if (random.chance(0.25)) return this.#look(sequence)
    if (random.chance(0.06)) return this.#sim.deploy(random, random.pick([0, 200]))
    if (random.chance(0.05)) return this.#pauseQueue()
    const verb = random.pick([
      'pause',
      'pause',
      'resume',
      'resume',
      'resume',
      'cancel',
      'reset',
      'start',
      'start',
    ] as const)
    if (await sequence[verb]()) this.#sim.count(`sequences: ${verb}`)
    if (verb === 'reset') await this.#checkEmpty(sequence)
  }

  async #make(): Promise<void> {
    const random = this.#random
    const items = Array.from({ length: random.chance(0.05) ? 0 : random.int(1, 14) }, () => this.#item())
    const key = random.chance(0.3) ? { key: `k${random.int(1, 2)}` } : {}
    const sequence = await this.#mill.sequence('archive', items, { start: random.chance(0.8), ...key })
    this.#sim.count(sequence.isNew ? 'sequences: made' : 'sequences: held key')
    if (sequence.isNew) this.#all.push(sequence)
  }

  #item(): ArchiveItem {
    const random = this.#random
    let dice = random.int(0, 99)
    const [, behaviour] = BEHAVIOURS.find(([share]) => (dice -= share) < 0) ?? [0, 'archives' as const]
    const isLong = random.chance(0.2) || behaviour === 'ignores its signal'
    return { ms: isLong ? random.int(200, 1_500) : random.int(0, 40), behaviour }
  }

  async #pauseQueue(): Promise<void> {
    const queue = this.#mill.queue('default')
    await queue.pause()
    await this.#sim.wait(this.#client, this.#random.int(10, 800))
    await queue.resume()
  }

  /** Progress, read first, is never ahead of the output, and its item is not recorded yet. */
  async #look(sequence: Sequence): Promise<void> {
    const { done, state, total } = await sequence.progress()
    const output = await sequence.output({ limit: 1_000 })
    if (output.length < done)
      this.#sim.fail(
        new BrokenPromise(`G3: progress of ${sequence.id} says ${done}, and there are ${output.length} items`),
      )
    for (const [i, { index }] of output.entries())
      if (i !== index) this.#sim.fail(new BrokenPromise(`G5: output ${i} of ${sequence.id} is item ${index}`))
    if (state === 'done' && done !== total)
      this.#sim.fail(new BrokenPromise(`G3: sequence ${sequence.id} is done at ${done} of ${total}`))
    this.#sim.count(`sequences: seen ${state}`)
  }

  /** Only this app starts its sequences: a reset one has nothing until then. */
  async #checkEmpty(sequence: Sequence): Promise<void> {
    const progress = await sequence.progress()
    const output = await sequence.output()
    if (progress.state === 'waiting' && (progress.done > 0 || output.length > 0))
      this.#sim.fail(new BrokenPromise(`G4: sequence ${sequence.id} was reset and shows ${progress.done} items`))
  }

  /** 1 when it would not have ended without this call. */
  async #goOn(sequence: Sequence): Promise<number> {
    const { state, requested } = await sequence.progress()
    if (state === 'waiting') await sequence.start()
    if (state === 'paused' || requested === 'pause') await sequence.resume()
    return state === 'waiting' || state === 'paused' || requested === 'pause' ? 1 : 0
  }

  /** Until each is done, failed for good or cancelled; some begin once more. */
  async endAll(): Promise<void> {
    for (let round = 0; round < 60; round += 1) {
      let open = 0
      await this.attempt(() => this.#mill.queue('default').resume())
      await this.attempt(async () => {
        // Also those whose making got no reply.
        for await (const { id, state } of this.#mill.find({ job: 'archive' }))
          if (!isFinal(state)) open += await this.#goOn(this.#mill.sequence(id))
      })
      if (open === 0 && round > 2) return
      await this.#sim.wait(this.#client, 300)
    }
  }
}

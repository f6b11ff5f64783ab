import assert from 'node:assert/strict'
import type { State } from '../../src/job/rules/states.js'
import { isFinal } from '../../src/job/rules/states.js'
import type { ClaimedJob, GuardedChange, NewJob } from '../../src/store/store.js'
import type { Random } from '../../src/testing/simulation/random.js'
import { seeded } from '../../src/testing/simulation/random.js'
import { contract, withUniqueSlot } from './fixture.js'
import type { ContractFixture, ContractCase } from './fixture.js'

const SEEDS = 2
const STEPS = 150
const GROUPS = ['g', 'h'] as const
const QUEUES = ['default', 'slow']

/** After any sequence of operations on members, the stored counters equal a count of all members. */
export const groupsModelCases: readonly ContractCase[] = Array.from({ length: SEEDS }, (_, seed) =>
  contract(`group counters agree with a full count after random moves (seed ${seed})`, async (b) => {
    const model = new Model(b, seeded(seed))
    await model.begin()
    for (let step = 0; step < STEPS; step += 1) {
      const move = await model.move()
      await model.compare(`seed ${seed}, step ${step}: ${move}`)
    }
  }),
)

interface Known {
  readonly group: string
  queue: string
  state: State
}

/** The members as last read from their rows; a deleted member keeps the last state that was read. */
class Model {
  readonly #b: ContractFixture
  readonly #random: Random
  readonly #known = new Map<string, Known>()
  #ids: string[] = []
  #claimed: ClaimedJob[] = []
  #worker = ''
  #beats = 0

  constructor(b: ContractFixture, random: Random) {
    this.#b = b
    this.#random = random
  }

  async begin(): Promise<void> {
    this.#worker = await this.#b.worker()
    this.#beats = 0
  }

  /** Makes one move and returns its name. */
  async move(): Promise<string> {
    const name = this.#random.pick(MOVES)
    await this[name]()
    return name
  }

  async compare(when: string): Promise<void> {
    const rows = await this.#b.store.jobs.readJobs(this.#ids)
    for (const row of rows)
      if (row !== undefined && row.group !== null)
        this.#known.set(row.id, { group: row.group, queue: row.queue, state: row.state })
    for (const group of GROUPS) {
      const wanted = new Map<string, number>()
      for (const known of this.#known.values())
        if (known.group === group) add(wanted, `${known.queue} ${known.state}`, 1)
      const kept = new Map<string, number>()
      for (const { queue, state, members } of (await this.#b.store.groups.readGroup(group)).counts)
        add(kept, `${queue} ${state}`, members)
      assert.deepEqual(sorted(kept), sorted(wanted), `group ${group}, ${when}`)
    }
  }

  async insert(): Promise<void> {
    await this.#insertAll(Array.from({ length: this.#random.int(1, 25) }, () => this.#job()))
  }

  async insertKeyed(): Promise<void> {
    const policy = this.#random.pick(['return', 'replace', 'move', 'reject'] as const)
    const jobs = Array.from({ length: this.#random.int(1, 3) }, () => ({
      ...this.#job(),
      key: this.#random.pick(['a', 'b']),
    }))
    await this.#insertAll(jobs, policy).catch(refusedOnly)
  }

  async insertUnique(): Promise<void> {
    const onDuplicate = this.#random.pick(['ignore', 'replace', 'reschedule', 'reject'] as const)
    await this.#insertAll([{ ...this.#job(), ...withUniqueSlot({ onDuplicate, while: 'waiting' }) }]).catch(refusedOnly)
  }

  async claim(): Promise<void> {
    const max = this.#random.int(1, 8)
    const suspects = this.#random.pick(['none', 'first', 'last'] as const)
    const claimed = await this.#b.claim(this.#worker, {
      max,
      starting: this.#random.int(suspects === 'none' ? 0 : 1, max),
      suspects,
    })
    this.#claimed.push(...claimed.jobs)
  }

  async report(): Promise<void> {
    const job = this.#random.pick(this.#claimed)
    if (job !== undefined)
      await this.#b.store.leases.reportJobs([{ ...job, startedAt: this.#b.clock.now, progress: null }])
  }

  /** Settles a few at once, to any state; some of them under claims that were lost meanwhile. */
  async settle(): Promise<void> {
    const some = this.#claimed.filter(() => this.#random.chance(0.5))
    this.#claimed = this.#claimed.filter((job) => !some.includes(job) || this.#random.chance(0.1))
    const settled = some.map((job) => {
      const to = this.#random.pick(SETTLED)
      // The outcome of a deleted job is known only if no requested change can alter it.
      const keepMs = to === 'done' ? this.#random.pick([0, 1_000, Infinity]) : Infinity
      const delayMs = to === 'scheduled' || to === 'retrying' ? this.#random.int(0, 3_000) : null
      const error = to === 'retrying' ? '{"name":"Error","message":"x"}' : null
      return this.#b.settled(job, { to, keepMs, delayMs, error })
    })
    const { refused } = await this.#b.store.leases.settleJobs(settled, [])
    for (const job of settled) {
      const known = this.#known.get(job.id)
      if (known !== undefined && job.to === 'done' && !refused.includes(job.ref)) known.state = 'done'
    }
  }

  async ask(): Promise<void> {
    const id = this.#random.pick(this.#ids)
    if (id !== undefined) await this.#b.request(id, this.#random.pick(['cancel', 'pause', 'resume'] as const))
  }

  async pause(): Promise<void> {
    await this.#change('paused', (state) => !isFinal(state) && !['running', 'parked', 'paused'].includes(state))
  }

  async resume(): Promise<void> {
    await this.#change('ready', (state) => state === 'paused', { exit: 'resumed' })
  }

  async cancel(): Promise<void> {
    await this.#change('cancelled', (state) => !isFinal(state) && !['running', 'parked'].includes(state))
  }

  async retry(): Promise<void> {
    await this.#change('ready', (state) => ['failed', 'cancelled', 'parked', 'retrying'].includes(state), {
      due: { inMs: 0 },
    })
  }

  async edit(): Promise<void> {
    const waits = (state: State): boolean => state === 'scheduled' || state === 'ready' || state === 'retrying'
    await this.#change('same', waits, {
      due: { inMs: this.#random.int(0, 2_000) },
      edit: { queue: this.#random.pick(QUEUES), priority: this.#random.int(0, 3) },
    })
  }

  async editPaused(): Promise<void> {
    await this.#change('paused', (state) => state === 'paused', { edit: { queue: this.#random.pick(QUEUES) } })
  }

  async remove(): Promise<void> {
    await this.#change('gone', (state) => state !== 'running')
  }

  async promote(): Promise<void> {
    this.#b.clock.now += this.#random.int(0, 1_000)
    const { expired } = await this.#b.store.jobs.promoteJobs(this.#random.int(1, 20))
    for (const { id, state } of expired)
      await this.#b.store.jobs.changeJob({ id, from: state, to: 'cancelled', reason: 'expired', keepMs: Infinity })
  }

  async prune(): Promise<void> {
    this.#b.clock.now += this.#random.int(0, 1_000)
    await this.#b.prune(5)
  }

  /** The worker dies and another one starts. */
  async rescue(): Promise<void> {
    const leased = await this.#b.store.leases.readLeases(this.#worker)
    const crashed = leased.map((job) =>
      this.#b.settled(job, this.#random.chance(0.2) ? { to: 'parked' } : { to: 'ready', attempt: 0, streak: 2 }),
    )
    await this.#b.store.leases.rescueJobs(this.#worker, this.#beats, crashed)
    await this.begin()
  }

  #job(): NewJob {
    const random = this.#random
    return this.#b.job({
      queue: random.pick(QUEUES),
      due: { inMs: random.chance(0.5) ? 0 : random.int(1, 3_000) },
      expires: random.chance(0.1) ? { inMs: random.int(1, 3_000) } : null,
      ...(random.chance(0.8) ? { group: random.pick(GROUPS) } : {}),
    })
  }

  async #insertAll(
    jobs: readonly NewJob[],
    policy: Parameters<ContractFixture['insert']>[1] = 'return',
  ): Promise<void> {
    for (const { id, isNew } of await this.#b.insert(jobs, policy)) if (isNew) this.#ids.push(id)
  }

  async #change(
    to: GuardedChange['to'] | 'same',
    means: (state: State) => boolean,
    rest: Partial<GuardedChange> = {},
  ): Promise<void> {
    const rows = (await this.#b.store.jobs.readJobs(this.#ids)).filter((row) => row !== undefined && means(row.state))
    const job = this.#random.pick(rows)
    if (job === undefined) return
    const change = { id: job.id, from: job.state, to: to === 'same' ? job.state : to, keepMs: Infinity, ...rest }
    const done = await this.#b.store.jobs.changeJob(change).catch(refusedOnly)
    if (done === undefined || done === 'stale' || to !== 'gone') return
    this.#known.delete(job.id)
    this.#ids = this.#ids.filter((id) => id !== job.id)
  }
}

const MOVES = [
  'insert',
  'insertKeyed',
  'insertUnique',
  'claim',
  'claim',
  'report',
  'settle',
  'settle',
  'ask',
  'pause',
  'resume',
  'cancel',
  'retry',
  'edit',
  'editPaused',
  'remove',
  'promote',
  'prune',
  'rescue',
] as const

const SETTLED = ['done', 'done', 'failed', 'cancelled', 'ready', 'scheduled', 'retrying', 'parked', 'paused'] as const

/** A held key or unique slot refuses the whole call. */
function refusedOnly(error: unknown): undefined {
  assert.match(String((error as { code?: unknown }).code), /^E_DUPLICATE_/)
}

function add(counts: Map<string, number>, name: string, number: number): void {
  counts.set(name, (counts.get(name) ?? 0) + number)
}

function sorted(counts: Map<string, number>): [string, number][] {
  return [...counts].sort(([a], [b]) => (a < b ? -1 : 1))
}

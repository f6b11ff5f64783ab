import type { Claim, ClaimedJob, GuardedChange, NewJob } from '../../src/store/store.js'
import { decideCommand } from '../../src/job/rules/command.js'
import type { Command } from '../../src/job/rules/command.js'
import type { State } from '../../src/job/rules/states.js'
import type { ContractFixture } from '../contract/fixture.js'

/** The states of the job before the two verbs. */
export const STANDINGS = [
  'ready',
  'scheduled',
  'paused',
  'blocked',
  'held',
  'running',
  'parked',
  'failed',
  'cancelled',
] as const
export type Standing = (typeof STANDINGS)[number]

/** What both find: the job, a child of it, a job that may become its parent, and jobs that may be added. */
export interface Stage {
  readonly state: State
  readonly job: string
  readonly claim: ClaimedJob | undefined
  readonly parent: string
  /** Separate ones for each of the two sides. */
  readonly added: Readonly<Record<Side, Readonly<Record<'returned' | 'replacing' | 'moving' | 'child', NewJob>>>>
  /** The names under which ids are printed. */
  readonly names: ReadonlyMap<string, string>
}

export type Side = 'one' | 'two'
export type Verb = (b: ContractFixture, stage: Stage, side: Side) => Promise<unknown>

const LATER = { inMs: 3_600_000 }

export async function setUp(b: ContractFixture, standing: Standing): Promise<Stage> {
  const parent = b.job({ name: 'parent', due: LATER })
  const job = b.job({
    key: 'k',
    group: 'g',
    ...(standing === 'scheduled' ? { due: LATER } : {}),
    ...(standing === 'blocked' ? { after: [{ id: parent.id }] } : {}),
  })
  const child = b.job({ name: 'child', after: [{ id: job.id }], group: 'g' })
  const added = { one: addedBy(b, job.id, 1), two: addedBy(b, job.id, 2) }
  for (const id of ['w1', 'w2']) await b.store.leases.addWorker({ id, host: 'here', pid: 1 })
  await b.insert([parent, job, child])
  while ((await b.store.jobs.promoteJobs(100)).again);
  const claim = await bring(b, job.id, standing)
  const state = standing === 'held' ? 'ready' : standing
  const names = new Map([
    [job.id, 'job'],
    [parent.id, 'parent'],
    [child.id, 'child'],
    ...Object.entries(added).flatMap(([side, jobs]) =>
      Object.entries(jobs).map(([name, one]): [string, string] => [one.id, `${name} of ${side}`]),
    ),
  ])
  return { state, job: job.id, claim, parent: parent.id, added, names }
}

function addedBy(b: ContractFixture, id: string, n: number): Stage['added'][Side] {
  return {
    returned: b.job({ key: 'k', payload: `{"n":${n}0}` }),
    replacing: b.job({ key: 'k', payload: `{"n":${n}1}`, group: 'g' }),
    moving: b.job({ key: 'k', payload: `{"n":${n}2}`, due: LATER }),
    child: b.job({ name: 'child', after: [{ id }], onParentFailure: 'run' }),
  }
}

async function bring(b: ContractFixture, id: string, standing: Standing): Promise<ClaimedJob | undefined> {
  if (standing === 'paused') await b.pause(id, 'ready')
  if (standing === 'cancelled')
    await b.store.jobs.changeJob({ id, from: 'ready', to: 'cancelled', keepMs: Infinity, reason: 'r' })
  if (!['held', 'running', 'parked', 'failed'].includes(standing)) return undefined
  const worker = 'w1'
  const { jobs } = await b.claim(worker, { max: 1, starting: standing === 'held' ? 0 : 1 })
  const claim = jobs[0] as ClaimedJob
  if (standing === 'parked' || standing === 'failed') await b.settle(claim, { to: standing, worker })
  return claim
}

/** As a client does it: where the command does not apply, or can only be requested, nothing is written. */
const change =
  (command: Command, more: Partial<GuardedChange> | ((stage: Stage) => Partial<GuardedChange>) = {}): Verb =>
  async (b, stage) => {
    const move = decideCommand(stage.state, command)
    if (move?.to === undefined) return 'nothing to do'
    const own = typeof more === 'function' ? more(stage) : more
    const guarded = { id: stage.job, from: stage.state, to: move.to, keepMs: Infinity, reason: 'asked', exit: command }
    return b.store.jobs.changeJob({ ...guarded, ...own })
  }

const insert =
  (which: keyof Stage['added'][Side], onDuplicate: 'return' | 'replace' | 'move'): Verb =>
  async (b, { added }, side) =>
    (await b.insert([added[side][which]], onDuplicate)).map(({ id, isNew }) => `${id} ${isNew ? 'new' : 'met'}`)

const settle =
  (to: State): Verb =>
  async (b, { claim }) => {
    if (claim === undefined) return 'no claim'
    const refused = await b.settle(claim, {
      to,
      worker: 'w1',
      ...(to === 'retrying' ? { delayMs: 1_000, retries: 1 } : {}),
    })
    return refused.length === 0 ? 'written' : 'refused'
  }

const underClaim =
  (act: (b: ContractFixture, claim: Claim) => Promise<unknown>): Verb =>
  async (b, { claim }) =>
    claim === undefined ? 'no claim' : act(b, claim)

/** Each claim has a fence of its own, on either side. */
let fences = 1_000_000

/** They skip rows that another transaction has locked, and run again later: a verb that found nothing runs once more at the end. */
export const COME_AGAIN = ['claim', 'rescue its worker']

/** What processes do to jobs, each by its store verb. */
export const VERBS: Readonly<Record<string, Verb>> = {
  pause: change('pause'),
  resume: change('resume'),
  cancel: change('cancel'),
  delete: change('delete', { keepMs: 0 }),
  retry: change('retry', { due: { inMs: 0 }, freshRetries: true }),
  'edit its payload': change('edit', { edit: { payload: '{"n":2}' } }),
  'edit its position in the queue': change('edit', { edit: { priority: 5, queue: 'other' } }),
  'let it run after another': change('edit', ({ parent }) => ({
    edit: { after: { parents: [{ id: parent }], onFailure: 'wait', keepMs: Infinity } },
  })),
  'request its cancel': (b, { job }) => b.request(job, 'cancel'),
  'request its pause': (b, { job }) => b.request(job, 'pause'),
  claim: async (b) => {
    return (await b.claim('w2', { fence: (fences += 1) })).jobs
      .map(({ id, payload }) => `${id} ${String(payload)}`)
      .sort()
  },
  begin: underClaim(async (b, claim) => {
    const lost = await b.store.leases.reportJobs([{ ...claim, startedAt: b.clock.now, progress: null }])
    return lost.length === 0 ? 'begun' : 'lost'
  }),
  'complete it': settle('done'),
  'fail it': settle('failed'),
  'retry it later': settle('retrying'),
  'park it': settle('parked'),
  'rescue its worker': async (b) => {
    const workers = await b.store.leases.readWorkers()
    const leased = await b.store.leases.readLeases('w1')
    const settled = leased.map((job) =>
      b.settled(job, { to: 'ready', attempt: job.attempt, worker: 'w1', startedAt: null }),
    )
    const beat = workers.find((one) => one.id === 'w1')?.beat ?? null
    const written = await b.store.leases.rescueJobs('w1', beat, settled)
    return leased.filter(({ ref }) => written?.refused.includes(ref) === false).map(({ id }) => id)
  },
  'enqueue under its key': insert('returned', 'return'),
  'replace it': insert('replacing', 'replace'),
  'move it': insert('moving', 'move'),
  'enqueue after it': insert('child', 'return'),
  promote: (b) => b.store.jobs.promoteJobs(100).then(() => 'promoted'),
  seal: (b) => b.store.groups.sealGroup({ group: 'g', whenDone: null }),
}

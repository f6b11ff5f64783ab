import assert from 'node:assert/strict'
import type { OnDuplicate, UniqueSlotRequest } from '../../src/job/rules/unique.js'
import type { RequestVerb } from '../../src/job/rules/request.js'
import type { Claimed, ClaimedJob, ClaimRequest, JobRow, NewJob, SettledJob, Store } from '../../src/store/store.js'
import { makeIds } from '../../src/world/ids.js'
import type { Ids } from '../../src/world/ids.js'

/** One case of a contract. */
export interface ContractCase {
  readonly name: string
  readonly run: (subject: ContractSubject) => Promise<void>
}

/** An empty store whose clock the case moves by hand. */
export interface ContractSubject {
  readonly store: Store
  readonly clock: { now: number }
}

/** A case with a fixture; the store is closed after it. */
export function contract(name: string, run: (fixture: ContractFixture) => Promise<void>): ContractCase {
  return {
    name,
    run: async (subject) => {
      const fixture = new ContractFixture(subject)
      try {
        await run(fixture)
      } finally {
        await subject.store.close()
      }
    },
  }
}

/** Short methods for the cases: a worker's and a client's view of one store. */
export class ContractFixture {
  readonly store: Store
  readonly clock: { now: number }
  readonly ids: Ids

  /** Two fixtures on one database share their ids. */
  constructor(subject: ContractSubject, ids: Ids = makeIds(counted())) {
    this.store = subject.store
    this.clock = subject.clock
    this.ids = ids
  }

  /** Prunes and sweeps once; returns how many jobs were pruned. */
  async prune(limit: number): Promise<number> {
    const { pruned } = await this.store.jobs.pruneJobs(limit)
    await this.store.jobs.sweepRows(limit)
    return pruned
  }

  job(change: Partial<NewJob> = {}): NewJob {
    const id = this.ids.jobId(this.clock.now)
    return {
      id,
      name: 'mail',
      queue: 'default',
      priority: 0,
      key: null,
      payload: '{"n":1}',
      options: null,
      due: { inMs: 0 },
      expires: null,
      ...change,
    }
  }
  async insert(
    jobs: readonly NewJob[],
    onDuplicate: OnDuplicate = 'return',
  ): Promise<readonly { id: string; isNew: boolean }[]> {
    return this.store.jobs.insertJobs(jobs, { onDuplicate, keepCancelledMs: Infinity })
  }
  async one(change: Partial<NewJob> = {}): Promise<string> {
    const job = this.job(change)
    await this.insert([job])
    return job.id
  }
  async read(id: string): Promise<JobRow> {
    const [row] = await this.store.jobs.readJobs([id])
    assert.ok(row, `job ${id} is there`)
    return row
  }
  async state(id: string): Promise<string> {
    const [row] = await this.store.jobs.readJobs([id])
    return row?.state ?? 'gone'
  }
  async worker(): Promise<string> {
    const id = this.ids.workerId()
    await this.store.leases.addWorker({ id, host: 'here', pid: 1 })
    return id
  }
  async claim(worker: string, change: Partial<ClaimRequest> = {}): Promise<Claimed> {
    const max = change.max ?? 100
    return this.store.leases.claimJobs({
      worker,
      fence: this.ids.fence(),
      names: ['mail'],
      max,
      starting: max,
      rooms: new Map(),
      suspects: 'none',
      ...change,
    })
  }
  settled(job: ClaimedJob, change: Partial<SettledJob> = {}): SettledJob {
    return {
      ref: job.ref,
      fence: job.fence,
      id: job.id,
      name: job.name,
      queue: job.queue,
      key: job.key,
      group: job.group,
      to: 'done',
      delayMs: null,
      dueAt: job.dueAt,
      attempt: job.attempt + 1,
      retries: job.retries,
      crashes: job.crashes,
      streak: 0,
      startedAt: this.clock.now,
      hasBegun: change.to !== 'ready' || (change.streak ?? 0) > 0,
      worker: 'w',
      result: null,
      error: null,
      reason: null,
      log: job.log,
      keepMs: Infinity,
      isParent: job.isParent,
      ...change,
    }
  }
  async settle(job: ClaimedJob, change: Partial<SettledJob> = {}): Promise<readonly number[]> {
    return (await this.store.leases.settleJobs([this.settled(job, change)], [])).refused
  }
  request(id: string, ask: RequestVerb): Promise<string> {
    return this.store.jobs.requestChange({ id, verb: ask, reason: `${ask} it`, keepMs: Infinity })
  }
  requests(): Promise<readonly object[]> {
    return this.store.leases.readRequests()
  }
  pause(id: string, from: JobRow['state']): Promise<string> {
    return this.store.jobs.changeJob({ id, from, to: 'paused', exit: 'paused', keepMs: Infinity })
  }
  resume(id: string): Promise<string> {
    return this.store.jobs.changeJob({ id, from: 'paused', to: 'ready', exit: 'resumed', keepMs: Infinity })
  }
  async found(query: {
    states?: readonly JobRow['state'][]
    names?: readonly string[]
    queues?: readonly string[]
    label?: string
    group?: string
    limit?: number
    order?: 'newest' | 'oldest'
  }): Promise<JobRow[]> {
    const rows: JobRow[] = []
    let cursor: number | null = null
    do {
      const page: Awaited<ReturnType<Store['jobs']['findJobs']>> = await this.store.jobs.findJobs({
        order: 'newest',
        limit: 10,
        ...query,
        cursor,
      })
      rows.push(...page.rows)
      cursor = page.cursor
    } while (cursor !== null)
    return rows
  }
}

function counted(): () => number {
  let word = 0x9e3779b9
  return () => (word = (Math.imul(word, 1664525) + 1013904223) >>> 0)
}

/** A unique slot as a job requests it. */
export function uniqueSlot(change: Partial<UniqueSlotRequest> = {}): UniqueSlotRequest {
  return { key: 'u', while: 'unfinished', onDuplicate: 'ignore', forMs: null, ...change }
}

/** A job with a unique slot; its options have it too, for a later retry. */
export function withUniqueSlot(change: Partial<UniqueSlotRequest> = {}): Partial<NewJob> {
  const unique = uniqueSlot(change)
  return { unique, options: JSON.stringify({ unique: { key: unique.key, while: unique.while } }) }
}

/** The only job of a claim. */
export function only(claimed: Claimed): ClaimedJob {
  assert.equal(claimed.jobs.length, 1)
  return claimed.jobs[0] as ClaimedJob
}

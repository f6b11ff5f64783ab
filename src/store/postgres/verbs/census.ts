import type { Census, CensusJob } from '../../census.js'
import type { Session } from '../connection/session.js'

export async function readCensus(session: Session): Promise<Census> {
  const [row] = await session.query<{ census: string }>(session.queries.readCensus)
  const census = JSON.parse(row?.census ?? '{}') as Omit<Census, 'jobs'> & { readonly jobs: readonly RawJob[] }
  return { ...census, jobs: census.jobs.map(toCensusJob) }
}

/** A job with its texts, which SQLite reads with its own JSON functions. */
interface RawJob extends Omit<CensusJob, 'after' | 'tableCount'> {
  readonly payload: string | null
  readonly options: string | null
  readonly log: string | null
  readonly after: string | null
  /** Rows in `history`, `waiting` and `ready`, and leases that list it; a lease still lists a job after its end. */
  readonly rows: number
  readonly leases: number
}

function toCensusJob({ payload, options, log, after, rows, leases, ...job }: RawJob): CensusJob {
  const given = read(payload) as Partial<Pick<CensusJob, 'follows' | 'policy' | 'n'>> & { after?: readonly string[] }
  const { unique, tick } = read(options) as {
    unique?: { key: string; while: CensusJob['while'] }
    tick?: { schedule: string; at: number }
  }
  const entries = (log === null ? [] : JSON.parse(log)) as readonly { readonly worker?: string }[]
  return {
    ...job,
    tableCount: rows > 0 ? rows : leases,
    follows: given.follows ?? null,
    payloadParents: given.after ?? [],
    policy: given.policy ?? null,
    n: given.n ?? null,
    slot: unique?.key ?? null,
    while: unique?.while ?? null,
    tick: tick === undefined ? null : `${tick.schedule} ${tick.at}`,
    lastLogWorker: entries.at(-1)?.worker ?? null,
    logEntries: entries.length,
    after: after === null ? [] : (JSON.parse(after) as string[]),
  }
}

function read(text: string | null): object {
  const value: unknown = text === null ? {} : JSON.parse(text)
  return typeof value === 'object' && value !== null ? value : {}
}

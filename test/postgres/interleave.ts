import { Client } from 'pg'
import type { JobRow } from '../../src/store/store.js'
import { openDatabase } from '../../src/store/postgres/connection/open.js'
import { PostgresStore } from '../../src/store/postgres/postgres-store.js'
import { targetOf } from '../../src/store/postgres/connection/target.js'
import { ContractFixture } from '../contract/fixture.js'
import { systemWorld } from '../../src/world/world.js'
import { COME_AGAIN, setUp, VERBS } from './verbs.js'
import type { Stage, Standing, Verb } from './verbs.js'

const SCHEMA = 'interleaved'
const START = 1_800_000_000_000
/** A verb that waits for a lock of the other is left waiting: the other continues, and then it does. */
const BLOCKED_MS = 40

/**
 * Two verbs on one job, of two processes: the second runs completely before the n-th statement of the first. For every n,
 * their results and the tables must equal those of one serial order or the other.
 */
export class Interleaver {
  readonly #client: Client
  readonly #clock = { now: START }
  #first!: PostgresStore
  #second!: PostgresStore
  #tables: string[] = []
  /** Called before each statement of the first verb. */
  #before: (() => Promise<void>) | undefined

  constructor(client: Client) {
    this.#client = client
  }

  static async open(url: string): Promise<Interleaver> {
    const client = new Client(url)
    await client.connect()
    const house = new Interleaver(client)
    const target = await targetOf(url, SCHEMA)
    house.#first = await house.#store({ ...target, makeClient: () => house.#watched(target.makeClient()) })
    house.#second = await house.#store(target)
    const { rows } = await client.query<{ name: string }>(
      `select format('%I.%I', schemaname, tablename) as name from pg_tables
       where schemaname = $1 and tablename not in ('migrations', 'identity', 'lanes')`,
      [SCHEMA],
    )
    house.#tables = rows.map((row) => row.name)
    return house
  }

  async close(): Promise<void> {
    await this.#first.close()
    await this.#second.close()
    await this.#client.end()
  }

  /** The outcomes of both serial orders, and how many statements the first verb has. */
  async inTurn(standing: Standing, one: Verb, two: Verb): Promise<{ outcomes: string[]; statements: number }> {
    let statements = 0
    const first = await this.#tell(standing, async (stage) => {
      this.#before = async () => void (statements += 1)
      const answer = await answerOf(() => one(this.#fixture(this.#first), stage, 'one'))
      this.#before = undefined
      return [answer, await answerOf(() => two(this.#fixture(this.#second), stage, 'two'))]
    })
    const second = await this.#tell(standing, async (stage) => {
      const answer = await answerOf(() => two(this.#fixture(this.#second), stage, 'two'))
      return [await answerOf(() => one(this.#fixture(this.#first), stage, 'one')), answer]
    })
    return { outcomes: [first, second], statements }
  }

  /** The second runs before the n-th statement of the first. */
  async between(standing: Standing, one: Verb, two: Verb, n: number): Promise<string> {
    return this.#tell(standing, async (stage) => {
      const second = (): Promise<unknown> => answerOf(() => two(this.#fixture(this.#second), stage, 'two'))
      let left = n
      let other: Promise<unknown> | undefined
      this.#before = async () => {
        left -= 1
        if (left !== 0) return
        other = second()
        await Promise.race([other, new Promise((next) => setTimeout(next, BLOCKED_MS))])
      }
      const first = (): Promise<unknown> => answerOf(() => one(this.#fixture(this.#first), stage, 'one'))
      const answer = await first()
      this.#before = undefined
      const answers = [answer, await (other ?? second())]
      if (comesAgain(one, answers[0])) answers[0] = await first()
      if (comesAgain(two, answers[1])) answers[1] = await second()
      return answers
    })
  }

  async #tell(standing: Standing, act: (stage: Stage) => Promise<readonly unknown[]>): Promise<string> {
    await this.#client.query(this.#tables.map((name) => `delete from ${name}`).join(';'))
    const stage = await setUp(this.#fixture(this.#second), standing)
    const answers = await act(stage)
    while ((await this.#second.promoteJobs(100)).again);
    await this.#checkTables()
    const told = JSON.stringify({ answers, ...(await this.#view()) }, undefined, 1)
    return [...stage.names].reduce((text, [id, name]) => text.replaceAll(id, name), told)
  }

  #fixture(store: PostgresStore): ContractFixture {
    return new ContractFixture({ store, clock: this.#clock })
  }

  async #view(): Promise<object> {
    const jobs: JobRow[] = []
    for (let cursor: number | null = null, isMore = true; isMore;) {
      const page = await this.#second.findJobs({ order: 'oldest', limit: 100, cursor })
      jobs.push(...page.rows)
      cursor = page.cursor
      isMore = cursor !== null
    }
    const { counts, sealedAt } = await this.#second.groups.readGroup('g')
    const requests = (await this.#second.readRequests()).map(({ kind }) => kind)
    return {
      jobs: jobs.map(seen).sort((a, b) => a.id.localeCompare(b.id)),
      counts: counts
        .filter((one) => one.members !== 0)
        .map(({ state, members }) => `${members} ${state}`)
        .sort(),
      isSealed: sealedAt !== null,
      requests,
    }
  }

  /** Each job is in one table, each key is of an unfinished job that has it, and each blocked job has a link. */
  async #checkTables(): Promise<void> {
    const s = SCHEMA
    const { rows } = await this.#client.query<{ what: string; ref: string }>(`
      with places as (
        select ref, 'ready' as place from ${s}.ready union all
        select ref, 'waiting' from ${s}.waiting union all
        select ref, 'history' from ${s}.history union all
        select held.ref, 'lease' from ${s}.leases e cross join unnest(e.refs) as held (ref)
        where not held.ref = any(e.released) and not exists (select from ${s}.history h where h.ref = held.ref))
      select 'a job is in ' || count(p.ref) || ' places' as what, j.ref
      from ${s}.jobs j left join places p on p.ref = j.ref group by j.ref having count(p.ref) <> 1
      union all
      select 'a row without a job is in ' || p.place, p.ref
      from places p where p.place <> 'lease' and not exists (select from ${s}.jobs j where j.ref = p.ref)
      union all
      select 'a key is held by a job that does not exist, has ended or has another key', k.ref
      from ${s}.keys k left join ${s}.jobs j on j.ref = k.ref
      where j.ref is null or j.key is distinct from k.key or exists (select from ${s}.history h where h.ref = k.ref)
      union all
      select 'an unfinished job has lost its key', j.ref
      from ${s}.jobs j
      where j.key is not null and not exists (select from ${s}.history h where h.ref = j.ref)
        and not exists (select from ${s}.keys k where k.ref = j.ref and k.key = j.key)
      union all
      select 'a blocked job has no link', w.ref
      from ${s}.waiting w where w.state = 'blocked' and not exists (select from ${s}.links l where l.child = w.ref)
      union all
      select 'a link is of a job that is not waiting', l.child
      from ${s}.links l
      where not exists (select from ${s}.waiting w where w.ref = l.child and w.state in ('blocked', 'paused'))
      union all
      select 'a requested change is of a job that is in no lease', w.ref
      from ${s}.requests w where not exists (select from places p where p.ref = w.ref and p.place = 'lease')`)
    if (rows.length > 0) throw new Error(rows.map(({ what, ref }) => `${what} (${ref})`).join('; '))
  }

  async #store(target: Awaited<ReturnType<typeof targetOf>>): Promise<PostgresStore> {
    const world = systemWorld()
    return new PostgresStore(await openDatabase(target, true, world), world, { now: () => this.#clock.now })
  }

  #watched<C extends { query: (asked: never) => Promise<unknown> }>(client: C): C {
    const query = client.query.bind(client) as (asked: never) => Promise<unknown>
    client.query = async (asked: never) => {
      await this.#before?.()
      return query(asked)
    }
    return client
  }
}

function comesAgain(verb: Verb, answer: unknown): boolean {
  return COME_AGAIN.some((name) => VERBS[name] === verb) && (answer as unknown[]).length === 0
}

async function answerOf(verb: () => Promise<unknown>): Promise<unknown> {
  try {
    return await verb()
  } catch (error) {
    return (error as { code?: string }).code ?? String(error)
  }
}

function seen(job: JobRow): { readonly id: string } & Record<string, unknown> {
  const { id, state, claimed, payload, key, group, priority, attempt, retries, after, dueAt, reason, streak } = job
  const due = dueAt === START ? 'now' : `${dueAt - START} ms`
  return { id, state, claimed, payload, key, group, priority, attempt, retries, after, due, reason, streak }
}

import type { JobRow } from '../../src/store/store.js'
import { START, TwoStores } from './two-stores.js'
import { COME_AGAIN, setUp, VERBS } from './verbs.js'
import type { Stage, Standing, Verb } from './verbs.js'

const SCHEMA = 'interleaved'

/**
 * Two verbs on one job, of two processes: the second runs completely before the n-th statement of the first. For every n,
 * their results and the tables must equal those of one serial order or the other.
 */
export class Interleaver {
  readonly #both: TwoStores

  constructor(both: TwoStores) {
    this.#both = both
  }

  static async open(url: string): Promise<Interleaver> {
    return new Interleaver(await TwoStores.open(url, SCHEMA))
  }

  close(): Promise<void> {
    return this.#both.close()
  }

  /** The outcomes of both serial orders, and how many statements the first verb has. */
  async inTurn(standing: Standing, one: Verb, two: Verb): Promise<{ outcomes: string[]; statements: number }> {
    let statements = 0
    const { first, second } = this.#both
    const inOrder = await this.#tell(standing, async (stage) => {
      const counted = await this.#both.count(() => answerOf(() => one(first, stage, 'one')))
      statements = counted.statements
      return [counted.answer, await answerOf(() => two(second, stage, 'two'))]
    })
    const reversed = await this.#tell(standing, async (stage) => {
      const answer = await answerOf(() => two(second, stage, 'two'))
      return [await answerOf(() => one(first, stage, 'one')), answer]
    })
    return { outcomes: [inOrder, reversed], statements }
  }

  /** The second runs before the n-th statement of the first. */
  async between(standing: Standing, one: Verb, two: Verb, n: number): Promise<string> {
    return this.#tell(standing, async (stage) => {
      const first = (): Promise<unknown> => answerOf(() => one(this.#both.first, stage, 'one'))
      const second = (): Promise<unknown> => answerOf(() => two(this.#both.second, stage, 'two'))
      const answers = await this.#both.between(first, second, n)
      if (comesAgain(one, answers[0])) answers[0] = await first()
      if (comesAgain(two, answers[1])) answers[1] = await second()
      return answers
    })
  }

  async #tell(standing: Standing, act: (stage: Stage) => Promise<readonly unknown[]>): Promise<string> {
    await this.#both.empty()
    const { second } = this.#both
    const stage = await setUp(second, standing)
    const answers = await act(stage)
    while ((await second.store.jobs.promoteJobs(100)).again);
    await this.#checkTables()
    const told = JSON.stringify({ answers, ...(await this.#view()) }, undefined, 1)
    return [...stage.names].reduce((text, [id, name]) => text.replaceAll(id, name), told)
  }

  async #view(): Promise<object> {
    const jobs: JobRow[] = []
    const { store } = this.#both.second
    for (let cursor: number | null = null, isMore = true; isMore;) {
      const page = await store.jobs.findJobs({ order: 'oldest', limit: 100, cursor })
      jobs.push(...page.rows)
      cursor = page.cursor
      isMore = cursor !== null
    }
    const { counts, sealedAt } = await store.groups.readGroup('g')
    const requests = (await store.leases.readRequests()).map(({ kind }) => kind)
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
    const { rows } = await this.#both.client.query<{ what: string; ref: string }>(`
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

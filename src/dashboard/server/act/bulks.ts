import type { BulkPreview, BulkResult } from '../../../client/commands/command-all.js'
import type { JobFilter, JobRecord } from '../../../job/record.js'
import type { State } from '../../../job/rules/states.js'
import type { PreviewAnswer, PreviewRequest } from '../../protocol/calls.js'
import type { BulkFields, Count } from '../../protocol/rows.js'
import { STATES_OF } from '../../protocol/verbs.js'
import type { JobVerb } from '../../protocol/verbs.js'
import { compileSearch } from '../search/compile-search.js'
import { errorText } from '../error-text.js'
import { isUuid } from '../ids.js'
import { Refusal } from '../parts.js'
import type { Parts } from '../parts.js'
import type { Show } from '../show/redact.js'
import { timesOf } from '../search/scan.js'
import { jobRow } from '../views/job-row.js'

/** A preview and a bulk that ended are kept for so long. */
const KEPT_MS = 600_000
const KEPT_MAX = 200
/** Previews at once, and bulks that run. */
const PREVIEWS_MAX = 4
const RUNNING_MAX = 4
/** Above this the user types the count. */
const TYPED_MIN = 1_000
const EXAMPLES = 5
const IDS_MAX = 500
/** How long a preview counts jobs that must be tested one by one. */
const COUNT_MS = 2_000
/** Jobs commanded at a time where they are tested one by one. */
const PAGE = 50
const TARGET_MAX = 1_000

type BulkVerb = PreviewRequest['verb']
type Given = { readonly actor: string; readonly role: string; readonly reason?: string | undefined }

const ENGINE = {
  'bulk.retry': 'retryAll',
  'bulk.cancel': 'cancelAll',
  'bulk.pause': 'pauseAll',
  'bulk.resume': 'resumeAll',
  'bulk.delete': 'deleteAll',
} as const satisfies Readonly<Record<BulkVerb, string>>
const COMMAND = {
  'bulk.retry': 'retry',
  'bulk.cancel': 'cancel',
  'bulk.pause': 'pause',
  'bulk.resume': 'resume',
  'bulk.delete': 'delete',
} as const satisfies Readonly<Record<BulkVerb, string>>

/** What a bulk acts on, as of the instant of its preview. */
type Plan =
  | {
      readonly kind: 'filter'
      readonly filter: JobFilter
      readonly isAll: boolean
      readonly cursor: string | undefined
    }
  | { readonly kind: 'search'; readonly query: string; readonly before: Date }
  | { readonly kind: 'ids'; readonly ids: readonly string[] }

interface Previewed {
  readonly verb: BulkVerb
  readonly plan: Plan
  readonly text: string
  readonly actor: string
  readonly total: Count
  readonly at: number
}

/** A bulk, as its page shows it. */
export type Bulk = Omit<BulkFields, 'examples'> & { readonly examples: readonly JobRecord[] }

/** Previews, and the bulks that run or ran. */
export class Bulks {
  readonly #previews = new Map<string, Previewed>()
  readonly #bulks = new Map<string, Bulk>()
  readonly #aborts = new Map<string, AbortController>()
  #previewing = 0

  get(id: string): Bulk | undefined {
    return this.#bulks.get(id)
  }

  async preview(
    parts: Parts,
    request: PreviewRequest,
    { actor, show }: { readonly actor: string; readonly show: Show },
  ): Promise<PreviewAnswer> {
    if (this.#previewing >= PREVIEWS_MAX) throw new Refusal('too-many', 'Too many previews run.', { retryMs: 2_000 })
    this.#previewing += 1
    try {
      return await this.#preview(parts, request, actor, show)
    } finally {
      this.#previewing -= 1
    }
  }

  async #preview(parts: Parts, { verb, of }: PreviewRequest, actor: string, show: Show): Promise<PreviewAnswer> {
    const at = parts.world.clock.now()
    const counted =
      'ids' in of
        ? await byIds(parts, verb, of.ids)
        : await bySearch(parts, verb, 'query' in of ? of.query : `print:${of.fingerprint}`, show, at)
    const id = parts.world.ids.jobId(at)
    this.#drop(at)
    this.#previews.set(id, { verb, plan: counted.plan, text: counted.text, actor, total: counted.count, at })
    return {
      id,
      verb,
      count: counted.count,
      states: counted.states,
      untouched: counted.untouched,
      examples: counted.examples.slice(0, EXAMPLES).map((record) => jobRow(parts, record, show)),
      asOf: at,
      mustType: counted.count.n > TYPED_MIN,
    }
  }

  /** Begins the bulk of a preview, once. Gives the id of its topic. */
  begin(
    parts: Parts,
    {
      target,
      verb,
      given,
      show,
    }: { readonly target: string; readonly verb: BulkVerb; readonly given: Given; readonly show: Show },
  ): Bulk {
    this.#drop(parts.world.clock.now())
    const found = this.#previews.get(target)
    if (found === undefined || found.verb !== verb || found.actor !== given.actor)
      throw new Refusal('not-found', 'This preview is older than ten minutes, or was used.', {
        hint: 'Make a new preview.',
      })
    if ([...this.#bulks.values()].filter(({ state }) => state === 'running').length >= RUNNING_MAX)
      throw new Refusal('too-many', `${RUNNING_MAX} bulks run. Wait until one of them has ended.`, { retryMs: 5_000 })
    this.#previews.delete(target)
    const bulk: Bulk = {
      id: target,
      verb,
      actor: given.actor,
      state: 'running',
      startedAt: parts.world.clock.now(),
      endedAt: null,
      total: found.total,
      changed: 0,
      held: 0,
      moved: 0,
      error: null,
      examples: [],
    }
    this.#bulks.set(target, bulk)
    const abort = new AbortController()
    this.#aborts.set(target, abort)
    void this.#run(parts, bulk, found, { given, signal: abort.signal, show })
    return bulk
  }

  /** False: it has ended. */
  stop(id: string): boolean {
    const abort = this.#aborts.get(id)
    abort?.abort()
    return abort !== undefined
  }

  end(): void {
    for (const abort of this.#aborts.values()) abort.abort()
  }

  async #run(parts: Parts, bulk: Bulk, { plan, verb, text }: Previewed, how: RunHow): Promise<void> {
    const note = (change: Partial<Bulk>): void =>
      void this.#bulks.set(bulk.id, { ...(this.#bulks.get(bulk.id) ?? bulk), ...change })
    const onProgress = ({ changed, skipped }: BulkResult): void => note({ changed, ...skipped })
    try {
      const run =
        plan.kind === 'filter'
          ? runFilter(parts, verb, plan, how, onProgress)
          : runEach(parts, verb, plan, how, onProgress)
      const result = await run
      onProgress(result)
      if (plan.kind !== 'filter') await auditOf(parts, verb, text, result.changed, how.given)
      note({ state: how.signal.aborted ? 'stopped' : 'done' })
    } catch (error) {
      note({ state: 'failed', error: errorText(parts.log, `run a ${verb}`, error).text })
    } finally {
      this.#aborts.delete(bulk.id)
      note({ endedAt: parts.world.clock.now() })
    }
  }

  /** Forgets what is too old, and the oldest when there are too many. */
  #drop(now: number): void {
    for (const [id, { at }] of this.#previews)
      if (now - at > KEPT_MS || this.#previews.size >= KEPT_MAX) this.#previews.delete(id)
    for (const [id, { endedAt }] of this.#bulks)
      if (endedAt !== null && (now - endedAt > KEPT_MS || this.#bulks.size >= KEPT_MAX)) this.#bulks.delete(id)
  }
}

interface RunHow {
  readonly given: Given
  readonly signal: AbortSignal
  readonly show: Show
}

interface Counted {
  readonly plan: Plan
  readonly text: string
  readonly count: Count
  readonly states: { readonly [state in State]?: Count }
  readonly untouched: Count
  readonly examples: readonly JobRecord[]
}

const statesOf = (verb: BulkVerb): readonly State[] => STATES_OF[`job.${COMMAND[verb]}` as JobVerb]

async function byIds(parts: Parts, verb: BulkVerb, ids: readonly string[]): Promise<Counted> {
  if (ids.length > IDS_MAX || !ids.every(isUuid))
    throw new Refusal('bad-request', `A selection has at most ${IDS_MAX} jobs.`)
  const records = (await Promise.all(ids.map((id) => parts.mill.get(id)))).filter((record) => record !== undefined)
  const touched = records.filter(({ state }) => statesOf(verb).includes(state))
  return {
    plan: { kind: 'ids', ids: touched.map(({ id }) => id) },
    text: `${touched.length} selected jobs`,
    count: { n: touched.length, exact: true },
    states: tally(touched),
    untouched: { n: ids.length - touched.length, exact: true },
    examples: touched,
  }
}

async function bySearch(parts: Parts, verb: BulkVerb, query: string, show: Show, at: number): Promise<Counted> {
  const { filter, test, terms } = compileSearch(parts, query, await timesOf(parts))
  if (terms.length === 0)
    throw new Refusal('bad-search', 'A bulk needs a search.', { hint: 'Such as state:failed queue:mail.' })
  const asked = filter.state as readonly State[] | undefined
  const states = asked?.filter((state) => statesOf(verb).includes(state))
  if (states?.length === 0)
    throw new Refusal('bad-search', `${COMMAND[verb]} does not apply to jobs that are ${asked?.join(' or ')}.`, {
      hint: `It applies to ${statesOf(verb).join(', ')}.`,
    })
  if (test === undefined)
    return byFilter(parts, verb, states === undefined ? filter : { ...filter, state: states }, query)
  return bySearching(parts, verb, { query, show, at })
}

async function byFilter(
  parts: Parts,
  verb: BulkVerb,
  { order: _order, ...filter }: JobFilter,
  query: string,
): Promise<Counted> {
  const preview: BulkPreview = await parts.mill[ENGINE[verb]](filter, { preview: true })
  const { count, exact, states, untouched, examples, cursor } = preview
  return {
    plan: { kind: 'filter', filter, isAll: false, cursor },
    text: query,
    count: { n: count, exact },
    states: Object.fromEntries(Object.entries(states).map(([state, n]) => [state, { n, exact }])),
    untouched: { n: untouched.count, exact: untouched.exact },
    examples,
  }
}

/** Counts jobs that are tested one by one, for a while. */
async function bySearching(
  parts: Parts,
  verb: BulkVerb,
  { query, show, at }: { readonly query: string; readonly show: Show; readonly at: number },
): Promise<Counted> {
  const end = parts.world.clock.monotonic() + COUNT_MS
  const touched: JobRecord[] = []
  let [others, cursor, isOver]: [number, string | undefined, boolean] = [0, undefined, false]
  while (!isOver && parts.world.clock.monotonic() < end) {
    const found = await parts.scanner.search(parts, {
      query,
      sort: 'newest',
      workflows: false,
      cursor,
      limit: PAGE,
      show,
    })
    for (const record of found.records)
      if (statesOf(verb).includes(record.state)) touched.push(record)
      else others += 1
    isOver = found.cursor === null
    cursor = found.cursor ?? undefined
  }
  return {
    plan: { kind: 'search', query, before: new Date(at) },
    text: query,
    count: { n: touched.length, exact: isOver },
    states: tally(touched),
    untouched: { n: others, exact: isOver },
    examples: touched,
  }
}

function tally(records: readonly JobRecord[]): { readonly [state in State]?: Count } {
  const counts = new Map<State, number>()
  for (const { state } of records) counts.set(state, (counts.get(state) ?? 0) + 1)
  return Object.fromEntries([...counts].map(([state, n]) => [state, { n, exact: true }]))
}

function runFilter(
  parts: Parts,
  verb: BulkVerb,
  { filter, cursor }: Extract<Plan, { kind: 'filter' }>,
  { given, signal }: RunHow,
  onProgress: (result: BulkResult) => void,
): Promise<BulkResult> {
  return parts.mill[ENGINE[verb]](filter, { ...given, cursor, signal, onProgress })
}

/** Jobs one by one: those of a selection, or what a search finds page by page. */
async function runEach(
  parts: Parts,
  verb: BulkVerb,
  plan: Exclude<Plan, { kind: 'filter' }>,
  { given, signal, show }: RunHow,
  onProgress: (result: BulkResult) => void,
): Promise<BulkResult> {
  let result: BulkResult = { changed: 0, skipped: { held: 0, moved: 0 }, cursor: undefined }
  for await (const ids of pagesOf(parts, plan, show)) {
    if (signal.aborted) break
    const ended = await Promise.all(ids.map((id) => commandOne(parts, verb, id, given)))
    const count = (what: string): number => ended.filter((each) => each === what).length
    const skipped = { held: result.skipped.held + count('held'), moved: result.skipped.moved + count('moved') }
    result = { changed: result.changed + count('changed'), skipped, cursor: undefined }
    onProgress(result)
  }
  return result
}

async function* pagesOf(
  parts: Parts,
  plan: Exclude<Plan, { kind: 'filter' }>,
  show: Show,
): AsyncGenerator<readonly string[]> {
  if (plan.kind === 'ids') {
    for (let from = 0; from < plan.ids.length; from += PAGE) yield plan.ids.slice(from, from + PAGE)
    return
  }
  let cursor: string | undefined
  do {
    const found = await parts.scanner.search(parts, {
      query: plan.query,
      sort: 'newest',
      workflows: false,
      cursor,
      limit: PAGE,
      show,
    })
    yield found.records.filter(({ createdAt }) => createdAt <= plan.before).map(({ id }) => id)
    cursor = found.cursor ?? undefined
  } while (cursor !== undefined)
}

async function commandOne(
  { mill }: Parts,
  verb: BulkVerb,
  id: string,
  given: Given,
): Promise<'changed' | 'held' | 'moved'> {
  try {
    return (await mill[COMMAND[verb]](id, given)) ? 'changed' : 'moved'
  } catch (error) {
    const { code } = error as { readonly code?: unknown }
    if (code === 'E_DUPLICATE_KEY' || code === 'E_DUPLICATE_JOB') return 'held'
    throw error
  }
}

/** One row for the whole bulk, beside those of its jobs; bulks by filter have theirs from the engine. */
async function auditOf(
  { internals }: Parts,
  verb: BulkVerb,
  text: string,
  count: number,
  { actor, role, reason }: Given,
): Promise<void> {
  if (count === 0) return
  await internals.store.observing.addAudit({
    actor,
    role,
    verb: ENGINE[verb],
    reason: reason ?? null,
    keepMs: internals.auditKeepMs(),
    target: `jobs ${text}`.slice(0, TARGET_MAX),
    count,
    before: null,
    after: null,
  })
}

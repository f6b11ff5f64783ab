import assert from 'node:assert/strict'
import type { Census, CensusJob, CensusSequence } from '../../src/store/census.js'
import { expectedCalls, expectedLogs, isOfThisRun, storedLogs } from './logs.js'
import { membersOf } from './reference/groups.js'
import { isFinal, isUnfinished, jobOf } from './reference/state.js'
import type { Group, Model, ModelJob } from './reference/state.js'

/** The ids of the model's jobs, by their numbers. Jobs that the engine enqueues by itself get theirs when they are seen. */
export class KnownIds {
  readonly #ids: (string | undefined)[]
  readonly #numbers: Map<string, number>

  constructor(ids: readonly (string | undefined)[] = []) {
    this.#ids = [...ids]
    this.#numbers = new Map(ids.flatMap((id, number) => (id === undefined ? [] : [[id, number]])))
  }

  copy(): KnownIds {
    return new KnownIds(this.#ids)
  }

  set(number: number, id: string): void {
    this.#ids[number] = id
    this.#numbers.set(id, number)
  }

  id(number: number): string | undefined {
    return this.#ids[number]
  }

  number(id: string): number | undefined {
    return this.#numbers.get(id)
  }

  /** Ticks, and jobs that follow a group: they are in the order in which the model has them. */
  note(model: Model, census: Census): void {
    for (const found of census.jobs.toSorted((one, other) => one.seq - other.seq)) {
      if (this.#numbers.has(found.id)) continue
      const made = model.jobs.find(
        (job) =>
          this.#ids[job.number] === undefined &&
          job.state !== 'gone' &&
          job.name === found.name &&
          tickOf(job) === found.tick,
      )
      if (made !== undefined) this.set(made.number, found.id)
    }
  }
}

/** The whole store is as the model says. */
export function compare(model: Model, census: Census, ids: KnownIds): void {
  ids.note(model, census)
  const [stored, expected] = [storedOf(census, ids, model.now), expectedOf(model, ids)]
  // Texts are compared faster than objects, and almost all are equal.
  if (JSON.stringify(stored) !== JSON.stringify(expected)) assert.deepEqual(stored, expected)
}

type Numbered = number | '?'

interface ComparedJob {
  readonly number: Numbered
  readonly [field: string]: unknown
}

/** Jobs that the model does not have come last. */
function byNumber({ number: one }: ComparedJob, { number: other }: ComparedJob): number {
  return (one === '?' ? Infinity : one) - (other === '?' ? Infinity : other) || 0
}

function storedOf(census: Census, ids: KnownIds, now: number): object {
  const bySeq = new Map(census.jobs.map(({ seq, id }) => [seq, ids.number(id) ?? '?']))
  const named = (id: string | null): Numbered | null => (id === null ? null : (ids.number(id) ?? '?'))
  // The row of a pause that is over may stay.
  const isOn = ({ until }: { readonly until: number | null }): boolean => until === null || until > now
  // The end of a job writes nothing into its slot; upkeep deletes a slot that says nothing any more.
  const unfinished = new Set(census.jobs.flatMap(({ id, state }) => (state === null || isFinal(state) ? [] : [id])))
  const isTaken = ({ job, until }: Census['slots'][number]): boolean =>
    unfinished.has(job) || (until !== null && until > now)
  const sequences = new Set(census.sequences.map(({ id }) => id))
  const fences = new Map(census.jobs.map(({ seq, fence }) => [seq, fence]))
  return {
    jobs: census.jobs.map((job) => storedJob(job, ids, sequences.has(job.id))).toSorted(byNumber),
    sequences: sorted(census.sequences.map((one) => [named(one.id), one.total, ...recordedOf(one)])),
    keys: sorted(census.keys.map(({ name, key, seq }) => [name, key, bySeq.get(seq)])),
    slots: sorted(census.slots.filter(isTaken).map(({ name, job, until }) => [name, named(job), until])),
    // A lease lists what its claim took: a sequence that was reset has left it.
    claimed: sorted(
      census.leases.flatMap(({ fence, jobs }) =>
        jobs.filter((seq) => fences.get(seq) === fence).map((seq) => bySeq.get(seq)),
      ),
    ),
    requests: sorted(census.requests.map(({ seq, kind }) => [bySeq.get(seq), kind])),
    pauses: sorted(census.pauses.filter(isOn).map(({ queue, until }) => [queue, until])),
    ticks: sorted(census.ticks.map(({ schedule, at, byHand, job }) => [schedule, at, byHand === 1, named(job)])),
    schedules: sorted(census.schedules.map(({ id, nextAt }) => [id, nextAt])),
    groups: sorted(
      census.groups
        .filter(({ group, sealedAt }) => sealedAt !== null || census.counts.some((count) => count.group === group))
        .map(({ group, unfinished, sealedAt, completedAt }) => [group, unfinished, sealedAt, completedAt]),
    ),
    counts: sorted(census.counts.map(({ group, queue, state, members }) => [group, queue, state, members])),
    links: sorted(
      census.links
        .filter((link) => isOfThisRun(link, census))
        .map(({ parent, child, policy }) => [named(parent), bySeq.get(child), policy]),
    ),
    ended: sorted(
      census.attempts.flatMap(({ queue, name, done, failed, retried }) =>
        [
          [`${queue} ${name} done`, done] as const,
          [`${queue} ${name} failed`, failed] as const,
          [`${queue} ${name} retrying`, retried] as const,
        ].filter(([, times]) => times > 0),
      ),
    ),
    workflows: sorted(storedLogs(census, ids)),
    todos: census.todos.length,
    strays: census.strays,
  }
}

/** The number of recorded items, and the failed attempts of the next one. */
function recordedOf({ rows }: CensusSequence): readonly number[] {
  return [rows.filter(({ no }) => no !== null).length, rows.find(({ no }) => no === null)?.attempt ?? 0]
}

function storedJob(job: CensusJob, ids: KnownIds, isSequence: boolean): ComparedJob {
  const { name, queue, key, group, state, attempt, crashes, keepUntil, tableCount, tick, dueAt, retries, streak } = job
  const after = job.after.map((id) => ids.number(id) ?? '?')
  const number: Numbered = ids.number(job.id) ?? '?'
  // The attempts of a sequence are those of its items.
  const counts = isSequence ? { crashes } : { attempt, crashes }
  const all = { number, name, queue, key, group, state, after, tick, tableCount, ...counts }
  if (state !== null && isFinal(state)) return { ...all, keepUntil }
  return { ...all, dueAt, streak, ...(isSequence ? {} : { retries }) }
}

function expectedOf(model: Model, ids: KnownIds): object {
  const there = model.jobs.filter(({ state }) => state !== 'gone')
  const unfinished = there.filter(isUnfinished)
  const seen = (number: number): Numbered => (ids.id(number) === undefined ? '?' : number)
  const running = unfinished.filter(({ state }) => state === 'running')
  return {
    jobs: there.map((job) => expectedJob(job, seen)).toSorted(byNumber),
    sequences: sorted(
      there.flatMap(({ number, sequence }) =>
        sequence === null ? [] : [[seen(number), sequence.total, sequence.done, sequence.attempts]],
      ),
    ),
    keys: sorted(unfinished.flatMap(({ name, key, number }) => (key === null ? [] : [[name, key, number]]))),
    slots: sorted(
      [...model.slots].flatMap(([name, { holder, until }]) =>
        isUnfinished(jobOf(model, holder)) || (until !== null && until > model.now)
          ? [[name.split('\n')[0], seen(holder), until]]
          : [],
      ),
    ),
    claimed: sorted(running.map(({ number }) => number)),
    requests: sorted(running.flatMap(({ number, request }) => (request === null ? [] : [[number, request]]))),
    pauses: sorted([...model.paused]),
    ticks: sorted(
      [...model.schedules].flatMap(([id, { ledger }]) =>
        ledger.map(({ at, byHand, job }) => [id, at, byHand, job === null ? null : seen(job)]),
      ),
    ),
    schedules: sorted([...model.schedules].map(([id, { nextAt }]) => [id, nextAt])),
    ...expectedGroups(model),
    links: sorted([
      ...unfinished.flatMap((job) => [...job.waitsFor].map(([parent, policy]) => [seen(parent), job.number, policy])),
      ...expectedCalls(model),
    ]),
    ended: sorted([...model.ended]),
    workflows: sorted(expectedLogs(model)),
    todos: 0,
    strays: 0,
  }
}

function expectedJob(job: ModelJob, seen: (number: number) => Numbered): ComparedJob {
  const { number, name, queue, key, group, state, attempt, retries, crashes, keepUntil, dueAt, streak } = job
  const after = job.after.map(seen)
  const counts = job.sequence === null ? { attempt, crashes } : { crashes }
  const all = { number, name, queue, key, group, state, after, tick: tickOf(job), tableCount: 1, ...counts }
  if (isFinal(state)) return { ...all, keepUntil }
  return { ...all, dueAt, streak, ...(job.sequence === null ? { retries } : {}) }
}

/** The counters do not tell running members from ready ones. */
function expectedGroups(model: Model): object {
  const counts = new Map<string, [string, string, string, number]>()
  for (const group of model.groups.keys())
    for (const { queue, state, members } of membersOf(model, group)) {
      const counted = state === 'running' ? 'ready' : state
      const name = `${group} ${queue} ${counted}`
      counts.set(name, [group, queue, counted, members + (counts.get(name)?.[3] ?? 0)])
    }
  const isOpen = (group: string): number => model.jobs.filter((job) => job.group === group && isUnfinished(job)).length
  // A group that no job is in, and that is not sealed, is as good as none.
  const isKnown = ([id, { sealedAt }]: [string, Group]): boolean =>
    sealedAt !== null || [...counts.values()].some(([group]) => group === id)
  return {
    groups: sorted(
      [...model.groups].filter(isKnown).map(([id, group]) => [id, isOpen(id), group.sealedAt, group.completedAt]),
    ),
    counts: sorted([...counts.values()]),
  }
}

function tickOf({ tick }: ModelJob): string | null {
  return tick === null ? null : `${tick.schedule} ${tick.at}`
}

/** In an order that does not depend on the store. */
function sorted<T>(list: readonly T[]): T[] {
  return list
    .map((value) => ({ value, text: JSON.stringify(value) }))
    .toSorted((one, other) => (one.text < other.text ? -1 : 1))
    .map(({ value }) => value)
}

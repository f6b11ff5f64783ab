import assert from 'node:assert/strict'
import type { Mill } from '../../src/index.js'
import type { KnownIds } from './compare.js'
import { membersOf } from './reference/groups.js'
import { isFinal, isUnfinished } from './reference/state.js'
import type { Model, ModelJob } from './reference/state.js'

interface Reader {
  readonly model: Model
  readonly ids: KnownIds
  readonly mill: Mill
  /** Which of the reads it is: one a step, so that each is made in many states. */
  readonly turn: number
}

/** What a caller reads is as the model says: a record, a count or the progress of a group. */
export async function read(reader: Reader): Promise<void> {
  const { turn } = reader
  if (turn % 3 === 0) await readJob(reader, reader.model.jobs.at(-1 - (Math.floor(turn / 3) % 5)))
  else if (turn % 3 === 1) await readGroup(reader)
  else await readCount(reader)
}

async function readJob({ ids, mill }: Reader, job: ModelJob | undefined): Promise<void> {
  const id = job === undefined ? undefined : ids.id(job.number)
  if (job === undefined || id === undefined) return
  const record = await mill.get(id)
  if (record === undefined || job.state === 'gone') return assert.equal(record?.state ?? 'gone', job.state)
  if (job.sequence !== null) await readSequence(mill, id, job)
  const isOver = isFinal(job.state)
  const found = {
    state: record.state,
    // The attempts of a sequence are those of its items.
    attempt: job.sequence === null ? record.attempt : job.attempt,
    crashes: record.crashes,
    priority: record.priority,
    queue: record.queue,
    key: record.key ?? null,
    group: record.group ?? null,
    dueAt: isOver ? null : record.dueAt.getTime(),
    after: record.after.map((parent) => ids.number(parent)),
  }
  const { state, attempt, crashes, priority, queue, key, group } = job
  const dueAt = isOver ? null : job.dueAt
  const after = job.after.map((parent) => (ids.id(parent) === undefined ? undefined : parent))
  assert.deepEqual(found, { state, attempt, crashes, priority, queue, key, group, dueAt, after })
}

async function readSequence(mill: Mill, id: string, { sequence, state, request }: ModelJob): Promise<void> {
  const { done, total, requested, ...progress } = await mill.sequence(id).progress()
  const shown = state === 'paused' && sequence?.isStarted === false ? 'waiting' : (SHOWN[state] ?? 'running')
  assert.deepEqual(
    { state: progress.state, done, total, requested, index: progress.error?.index },
    {
      state: shown,
      done: sequence?.done,
      total: sequence?.total,
      requested: request ?? undefined,
      index: shown === 'failed' ? sequence?.done : undefined,
    },
  )
  const output = await mill.sequence(id).output()
  assert.deepEqual(
    output.map(({ index }) => index),
    output.map((_, index) => index),
  )
  assert.equal(output.length, done)
}

/** The states of a sequence that are not those of a job at work. */
const SHOWN: { readonly [state: string]: string } = {
  paused: 'paused',
  parked: 'failed',
  done: 'done',
  failed: 'failed',
  cancelled: 'cancelled',
}

async function readGroup({ model, mill, turn }: Reader): Promise<void> {
  const groups = [...model.groups.keys()]
  const group = groups[Math.floor(turn / 3) % groups.length]
  if (group === undefined) return
  const { total, unfinished, sealed, ...progress } = await mill.group(group).progress()
  const members = membersOf(model, group)
  const counts: { [state: string]: number } = {}
  for (const { state, members: count } of members) counts[state] = (counts[state] ?? 0) + count
  const shown = Object.fromEntries(
    Object.entries(progress).filter(([, count]) => typeof count === 'number' && count > 0),
  )
  assert.deepEqual(shown, counts)
  assert.deepEqual(
    { total, unfinished, sealed },
    {
      total: Object.values(counts).reduce((sum, count) => sum + count, 0),
      unfinished: model.jobs.filter((job) => job.group === group && isUnfinished(job)).length,
      sealed: model.groups.get(group)?.sealedAt !== null,
    },
  )
}

async function readCount({ model, mill, turn }: Reader): Promise<void> {
  const states = ['ready', 'done', 'cancelled', 'blocked', 'running', 'paused'] as const
  const state = states[Math.floor(turn / 3) % states.length] as (typeof states)[number]
  const expected = model.jobs.filter((job) => job.state === state).length
  assert.deepEqual({ state, ...(await mill.count({ state })) }, { state, count: expected, exact: true })
}

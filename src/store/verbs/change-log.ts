import type { State } from '../../job/rules/states.js'
import { numberOf } from '../rows/columns.js'
import type { Numeric } from '../rows/columns.js'
import type { ChangeBound, ChangeLogStore, ChangePage, ChangeRow, ReadChanges } from '../observing/change-log.js'
import { awaited } from './verb.js'
import type { Verb, VerbRunner, VerbSession } from './verb.js'

/** The change log on the store of these verbs; each store has its own triggers. */
export function changeLogVerbs(verbs: VerbRunner, switchLog: ChangeLogStore['switchLog']): ChangeLogStore {
  return {
    switchLog,
    openReader: (consumer, reader) => verbs.write((session) => openReader(session, consumer, reader)),
    readChanges: (request) => verbs.read((session) => readChanges(session, request)),
    saveRead: (consumer, reader, read) => verbs.write((session) => saveRead(session, consumer, reader, read)),
    dropConsumer: (consumer) => verbs.write((session) => dropConsumer(session, consumer)),
    trimChanges: (limit) => verbs.write((session) => trimChanges(session, limit)),
  }
}

function* openReader(session: VerbSession, consumer: string, reader: string): Verb<null> {
  const taken = yield* awaited(session.rows('takeConsumer', consumer, reader))
  if (taken.length > 0) return null
  const { number } = yield* boundOf(session)
  yield* awaited(session.run('addConsumer', consumer, reader, number))
  return null
}

function* readChanges(session: VerbSession, request: ReadChanges): Verb<ChangePage | null> {
  const { consumer, reader, limit } = request
  const [row] = yield* awaited(session.rows<{ readonly position: Numeric }>('readConsumer', consumer, reader))
  if (row === undefined) return null
  const after = request.after ?? numberOf(row.position)
  const bound = request.bound ?? (yield* boundOf(session))
  const writers = yield* stillOpen(session, bound.writers)
  if (writers.length > 0) return { rows: [], after, bound: { ...bound, writers } }
  const rows = (yield* awaited(session.rows<StoredChange>('changesAfter', after, bound.number, limit))).map(toChange)
  const isWhole = rows.length < limit
  return {
    rows,
    after: isWhole ? Math.max(after, bound.number) : (rows.at(-1)?.number ?? after),
    bound: isWhole ? undefined : { ...bound, writers: [] },
  }
}

/** First the number, then the writers: a writer that has a number up to this one is open then, or has committed. */
function* boundOf(session: VerbSession): Verb<ChangeBound> {
  const [last] = yield* awaited(session.rows<{ readonly number: Numeric | null }>('lastChange'))
  const writers = yield* awaited(session.rows<{ readonly writer: string }>('changeWriters'))
  return { number: numberOf(last?.number ?? 0), writers: writers.map(({ writer }) => writer) }
}

function* stillOpen(session: VerbSession, before: readonly string[]): Verb<readonly string[]> {
  if (before.length === 0) return before
  const now = yield* awaited(session.rows<{ readonly writer: string }>('changeWriters'))
  const open = new Set(now.map(({ writer }) => writer))
  return before.filter((writer) => open.has(writer))
}

function* saveRead(session: VerbSession, consumer: string, reader: string, read: number): Verb<boolean> {
  const saved = yield* awaited(session.rows('saveRead', consumer, reader, read))
  return saved.length > 0
}

function* dropConsumer(session: VerbSession, consumer: string): Verb<boolean> {
  const dropped = yield* awaited(session.rows('dropConsumer', consumer))
  return dropped.length > 0
}

function* trimChanges(session: VerbSession, limit: number): Verb<number> {
  const { number, writers } = yield* boundOf(session)
  // Without a consumer: what is final already, since the next one begins after it.
  if (writers.length > 0) return 0
  const dropped = yield* awaited(session.rows('trimChanges', number, limit))
  return dropped.length
}

interface StoredChange {
  readonly number: Numeric
  readonly id: string
  readonly job: string
  readonly queue: string
  readonly state: State
  readonly at: Numeric
}

function toChange({ number, at, ...row }: StoredChange): ChangeRow {
  return { ...row, number: numberOf(number), at: numberOf(at) }
}

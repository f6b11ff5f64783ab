/** Named values of a view, beside its rows. */
export type Fields = object

/** Rows by their ids. */
export type Rows<Row> = Readonly<Record<string, Row>>

/** The parts of a view that this version of the engine does not provide: the name of the field, and the sentence to show. */
export type Absent = Readonly<Record<string, string>>

/** The whole state of a topic. */
export interface Snapshot<F extends Fields = Fields, Row = unknown> {
  readonly topic: string
  /** Of the newest frame that it includes: give it back as `have`. Undefined for a later page. */
  readonly id?: string | undefined
  /** When the store was read. */
  readonly now: number
  readonly fields: F
  readonly rows: Rows<Row>
  /** The ids of the rows in the order of the view. */
  readonly order: readonly string[]
  readonly absent?: Absent | undefined
  /** The next page: see `ViewRequest`, or `SearchRequest` for a list. Null after the last page. */
  readonly cursor: string | null
}

/** What has changed since the frame before. */
export interface Patch<F extends Fields = Fields, Row = unknown> {
  readonly topic: string
  readonly id?: string | undefined
  readonly now: number
  /** The changed fields, whole. */
  readonly fields: Partial<F>
  /** The changed rows, whole; null: the row was removed. */
  readonly rows: Readonly<Record<string, Row | null>>
  /** The new order, when it has changed. */
  readonly order?: readonly string[] | undefined
  readonly absent?: Absent | undefined
  readonly cursor?: string | null | undefined
}

export interface Gone {
  readonly topic: string
  readonly reason: 'not-found' | 'not-allowed' | 'deleted'
  readonly text: string
}

export interface Stale {
  readonly topic: string
  /** Since when the topic cannot be read. */
  readonly since: number
  /** The server reads again at this instant. */
  readonly againAt: number
  readonly text: string
}

export interface Bye {
  readonly inMs: number
  readonly reason: 'stopping' | 'signed-out' | 'slow' | 'too-many'
}

/** An event of a stream. */
export type Frame =
  | { readonly event: 'snapshot'; readonly id: string; readonly data: Snapshot }
  | { readonly event: 'patch'; readonly id: string; readonly data: Patch }
  | { readonly event: 'gone'; readonly data: Gone }
  | { readonly event: 'stale'; readonly data: Stale }
  | { readonly event: 'bye'; readonly data: Bye }

/** The state after a patch. What did not change keeps its identity, so that a view draws only what did. */
export function applyPatch<F extends Fields, Row>(before: Snapshot<F, Row>, patch: Patch<F, Row>): Snapshot<F, Row> {
  return {
    ...before,
    id: patch.id ?? before.id,
    now: patch.now,
    fields: Object.keys(patch.fields).length === 0 ? before.fields : { ...before.fields, ...patch.fields },
    rows: patchedRows(before.rows, patch.rows),
    order: patch.order ?? before.order,
    absent: patch.absent ?? before.absent,
    cursor: patch.cursor === undefined ? before.cursor : patch.cursor,
  }
}

function patchedRows<Row>(before: Rows<Row>, changed: Readonly<Record<string, Row | null>>): Rows<Row> {
  const names = Object.keys(changed)
  if (names.length === 0) return before
  // Without a prototype: an id may have any name, and `__proto__` is one.
  const rows = Object.assign(Object.create(null) as Record<string, Row>, before)
  for (const name of names) {
    const row = changed[name]
    if (row === null || row === undefined) delete rows[name]
    else rows[name] = row
  }
  return rows
}

/** The patch that leads from one state of a topic to the next; undefined when they differ in `now` only. */
export function diffView<F extends Fields, Row>(
  before: Snapshot<F, Row>,
  after: Snapshot<F, Row>,
): Patch<F, Row> | undefined {
  const fields = changedFields(before.fields, after.fields)
  const rows = changedRows(before.rows, after.rows)
  const isOrderChanged = !isSame(before.order, after.order)
  const isAbsentChanged = !isSame(before.absent, after.absent)
  const isCursorChanged = before.cursor !== after.cursor
  const hasRows = Object.keys(rows).length > 0
  if (Object.keys(fields).length === 0 && !hasRows && !isOrderChanged && !isAbsentChanged && !isCursorChanged)
    return undefined
  return {
    topic: after.topic,
    now: after.now,
    fields,
    rows,
    ...(isOrderChanged ? { order: after.order } : {}),
    ...(isAbsentChanged ? { absent: after.absent ?? {} } : {}),
    ...(isCursorChanged ? { cursor: after.cursor } : {}),
  }
}

/** Every view has the same fields in each of its states, so none is removed. */
function changedFields<F extends Fields>(before: F, after: F): Partial<F> {
  const changed: Partial<F> = {}
  for (const name of Object.keys(after) as (keyof F)[])
    if (!isSame(before[name], after[name])) changed[name] = after[name]
  return changed
}

function changedRows<Row>(before: Rows<Row>, after: Rows<Row>): Record<string, Row | null> {
  const changed = Object.create(null) as Record<string, Row | null>
  for (const [id, row] of Object.entries(after))
    if (!Object.hasOwn(before, id) || !isSame(before[id], row)) changed[id] = row
  for (const id of Object.keys(before)) if (!Object.hasOwn(after, id)) changed[id] = null
  return changed
}

/** Equal as JSON, where a field that is undefined is not written. */
function isSame(a: unknown, b: unknown): boolean {
  if (Object.is(a, b)) return true
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false
  if (Array.isArray(a) || Array.isArray(b))
    return Array.isArray(a) && Array.isArray(b) && a.length === b.length && a.every((each, i) => isSame(each, b[i]))
  const [one, other] = [a as Record<string, unknown>, b as Record<string, unknown>]
  const names = new Set([...Object.keys(one), ...Object.keys(other)])
  return [...names].every((name) => isSame(one[name], other[name]))
}

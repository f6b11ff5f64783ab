/**
 * Runs statements on the store's own connection or in a caller's transaction. Database libraries differ in how they
 * bind values, so the interface needs little: values are texts and nulls, and each placeholder is cast to text first
 * (`$1::text::bigint`). A library that inspects the type of a placeholder would otherwise encode a bigint or JSON in
 * its own way.
 */
export interface SqlExecutor {
  /**
   * `$1` may occur more than once. Rows have the column names as keys; see `numberOf` (store/columns.ts) for bigints.
   */
  query<R extends object = Record<string, unknown>>(text: string, values: readonly (string | null)[]): Promise<R[]>
}

/**
 * Some users configure their library to rename columns of results (postgres.camel, a mapper of Knex): started_at is
 * returned as startedAt, StartedAt or started-at. The original name is added to each row.
 */
export function withGivenNames<R extends object>(rows: readonly object[]): R[] {
  const came = Object.keys(rows[0] ?? {})
  const renamed = came.filter((name) => !/^[a-z0-9_]*$/.test(name))
  if (renamed.length === 0) return rows as R[]
  const names = renamed.map((name) => ({
    name,
    given: [lowerFirst(name), snake(name)].filter((each) => !came.includes(each)),
  }))
  return rows.map((row) => {
    const whole = { ...row } as Record<string, unknown>
    for (const { name, given } of names) for (const each of given) whole[each] = whole[name]
    return whole as R
  })
}

const lowerFirst = (name: string): string => name.slice(0, 1).toLowerCase() + name.slice(1)

const snake = (name: string): string =>
  lowerFirst(name)
    .replaceAll('-', '_')
    .replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)

/** The SQLSTATE of an error, in whichever property the library stores it. Undefined when there is none. */
export function sqlStateOf(error: unknown, depth = 4): string | undefined {
  if (typeof error !== 'object' || error === null || depth === 0) return undefined
  const fields = error as Record<
    'code' | 'originalCode' | 'cause' | 'driverError' | 'meta' | 'driverAdapterError',
    unknown
  >
  for (const inner of [fields.meta, fields.driverAdapterError, fields.driverError, fields.cause]) {
    const state = sqlStateOf(inner, depth - 1)
    if (state !== undefined) return state
  }
  return [fields.originalCode, fields.code].find(isSqlState)
}

/** Node's EPIPE has no digit, and Prisma's own codes are P1000 to P6999, where PostgreSQL has only P0. */
function isSqlState(code: unknown): code is string {
  return typeof code === 'string' && /^(?=.*\d)[0-9A-Z]{5}$/.test(code) && !/^P[1-9]/.test(code)
}

/**
 * Schemas for tests of behaviour on PostgreSQL. To make the tables takes longer than most of these tests, so a schema whose
 * test is over is emptied and lent to a later test of the same file. Tests of the migration itself ask for a database of
 * their own and never come here.
 */
const emptied: string[] = []
let lent: string[] = []
let made = 0

export function lendSchema(): string {
  const schema = emptied.pop() ?? `t${process.pid}_${(made += 1)}`
  lent.push(schema)
  return schema
}

/** A test begins: what was lent before, by the file or its `beforeAll`, belongs to more tests than this one. */
export function startLending(): void {
  lent = []
}

/** A test is over: what was lent to it is lent again if `empty` could empty it, and left alone if not. */
export async function takeBack(empty: (schemas: readonly string[]) => Promise<boolean>): Promise<void> {
  const schemas = lent
  lent = []
  if (schemas.length > 0 && (await empty(schemas))) emptied.push(...schemas)
}

/** The database of these schemas is dropped: the next file has another. */
export function forgetSchemas(): void {
  emptied.length = 0
}

/** Seven days of history, unless the store has it already. `store` is what `millrace({ store })` takes as text. */
export async function fill(store, given) {
  if (!/^postgres(ql)?:/.test(store)) {
    const { fillSqlite } = await import('./fill-sqlite.js')
    return fillSqlite(store, given)
  }
  const [{ fillPostgres }, { schemaOf }] = await Promise.all([
    import('./fill-postgres.js'),
    import('../../../dist/store/postgres/connection/target.js'),
  ])
  const { where, schema } = schemaOf(store)
  return fillPostgres(where, schema ?? 'millrace', given)
}

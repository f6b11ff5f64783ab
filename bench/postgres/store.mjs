import { PostgresPlace } from './place.mjs'

export function openPlace(root, { server }) {
  return PostgresPlace.open(root, server)
}

/** What all contestants run on, for the first line: the settings that decide the figures are read from the server. */
export async function describeStore(place) {
  const [{ version }] = await place.server.query(`select current_setting('server_version') as version`)
  const names = ['fsync', 'synchronous_commit', 'autovacuum', 'shared_buffers', 'jit']
  const rows = await place.server.query(
    `select name, current_setting(name) as value from unnest(array['${names.join(`', '`)}']) as name`,
  )
  const settings = rows.map(({ name, value }) => `${name}=${value}`).join(', ')
  const redis = place.redis === undefined ? '' : `, Redis ${await place.redis.version()} (appendonly, everysec)`
  const [{ llvm }] = await place.server.query(`select pg_jit_available() as llvm`)
  return `PostgreSQL ${version} (${settings}, ${llvm ? 'with' : 'without'} LLVM)${redis}`
}

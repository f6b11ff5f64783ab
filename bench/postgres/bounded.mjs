import { bounded } from '../bounded.mjs'
import { SMALL } from '../payloads.mjs'
import { waiting } from './cases.mjs'

/** With the autovacuum of a stock server, which the other scenarios turn off. */
export async function scenario(bench) {
  const { server } = bench.place
  const setAutovacuum = async (value) => {
    await server.query(`alter system set autovacuum = ${value}`)
    await server.query('select pg_reload_conf()')
  }
  await setAutovacuum('on')
  try {
    return await bounded(bench, {
      contestant: 'postgres/millrace',
      empty: () => waiting(bench, 'millrace', SMALL, 0),
    })
  } finally {
    await setAutovacuum('off')
  }
}

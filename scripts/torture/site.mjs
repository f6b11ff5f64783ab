import { join } from 'node:path'
import { makeStore } from './look.mjs'
import { OutsideEye } from './outside-eye.mjs'
import { PostgresEye } from './postgres-eye.mjs'
import { startDoomed } from './doomed-server.mjs'

/** The tables of a run are in a schema of their own; with --url it is in a database of its own too. */
const SCHEMA = 'torture'

/**
 * The store of a run, of either kind: `config` tells a laborer how to open it, and `eye` reads it without
 * the engine. `server` is set where it can be killed.
 */
export async function openSite({ store, url }, ground) {
  return store === 'postgres' ? openPostgres(url, ground) : openFile(ground)
}

function openFile(ground) {
  const file = join(ground.room('store'), 'jobs.db')
  makeStore(file, ground.entry)
  const eye = new OutsideEye(file)
  return { config: { file, durability: 'power' }, eye, close: async () => eye.close() }
}

async function openPostgres(given, ground) {
  const server = await startDoomed(given, ground)
  try {
    const url = `${server.url}?schema=${SCHEMA}`
    const { millrace } = await import(ground.entry)
    const mill = await millrace({ store: url, logger: false })
    await mill.close()
    const eye = new PostgresEye(server.url, SCHEMA)
    await eye.watchSettlements()
    const close = async () => {
      await eye.close()
      await server.stop()
    }
    return { config: { url, schema: SCHEMA }, eye, server, close }
  } catch (error) {
    await server.stop()
    throw error
  }
}

import { createDatabase } from '../../src/testing/postgres/fresh-database.js'
import type { SimulationConfig } from '../../src/testing/simulation/simulation.js'
import { configOf } from './campaign.js'
import { PostgresEngine } from './postgres-engine.js'

/** A database of one process of the campaign. */
export async function openPostgres(url: string): Promise<{ engine: PostgresEngine; close: () => Promise<void> }> {
  const database = await createDatabase(url)
  const engine = await PostgresEngine.open(database.url)
  const close = async (): Promise<void> => {
    await engine.close()
    await database.drop()
  }
  return { engine, close }
}

/** What a seed decides otherwise: the server's own locks are real, and no process outside of the fleet can hold all of it. */
export function onPostgres(seed: number): Partial<SimulationConfig> {
  return { faults: { ...configOf(seed).faults, hold: 0 } }
}

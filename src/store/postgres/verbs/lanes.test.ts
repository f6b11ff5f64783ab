import { expect, test } from 'vitest'
import type { SqlExecutor } from '../connection/sql-executor.js'
import type { LaneName } from './lanes.js'
import { LaneMoved, Lanes } from './lanes.js'
import type { Queries } from '../queries/queries.js'

/** A table of lanes in memory, so that a test decides when numbers are forgotten between two statements. */
function lanesTable(): Lanes {
  const rows = new Map<string, object>()
  const db: SqlExecutor = {
    query: async <R extends object>(text: string, values: readonly (string | null)[]) => {
      const lanes = JSON.parse(values[0] ?? '[]') as LaneName[]
      if (text === 'add')
        for (const { queue, name } of lanes) rows.set(`${queue} ${name}`, { lane: rows.size + 1, queue, name })
      return lanes.flatMap(({ queue, name }) => rows.get(`${queue} ${name}`) ?? []) as R[]
    },
  }
  return new Lanes(db, { readLanes: 'read', addLanes: 'add' } as Queries)
}

const mail = { queue: 'default', name: 'mail' }

test('a call whose lanes were forgotten by a lost connection reads them again, however often', async () => {
  const lanes = lanesTable()
  let losses = 0
  const write = async (isAgain: boolean): Promise<[number, boolean]> => {
    if ((losses += 1) < 20) lanes.forget()
    return [lanes.known('default', 'mail'), isAgain]
  }
  expect(await lanes.ensureLanes([mail], write)).toEqual([1, false])
})

test('a connection that is lost without end is reported as such', async () => {
  const lanes = lanesTable()
  const write = async (): Promise<number> => (lanes.forget(), lanes.known('default', 'mail'))
  await expect(lanes.ensureLanes([mail], write)).rejects.toMatchObject({ code: 'E_STORE_UNREACHABLE' })
})

test('lanes whose numbers keep changing are read five times', async () => {
  const lanes = lanesTable()
  const calls: boolean[] = []
  const write = (isAgain: boolean): Promise<never> => {
    calls.push(isAgain)
    return Promise.reject(new LaneMoved())
  }
  await expect(lanes.ensureLanes([mail], write)).rejects.toMatchObject({ code: 'E_STORE', message: /keep changing/ })
  expect(calls).toEqual([false, true, true, true, true])
})

import { expect, test } from 'vitest'
import { chooseLibrary } from '../store/sqlite/connection/library.js'
import { openFile } from '../store/sqlite/connection/open.js'
import { SqliteStore } from '../store/sqlite/sqlite-store.js'
import { systemWorld } from '../world/world.js'
import { fireDue } from './fire.js'
import { writeSpec } from './spec.js'

const NOON = Date.UTC(2030, 0, 1, 12)

test('a schedule that cannot be fired here is reported, and the others are fired', async () => {
  const world = systemWorld()
  const target = new (chooseLibrary().open)(':memory:')
  const file = await openFile({ target, durability: 'process' }, true, world)
  const store = new SqliteStore(file, world, { durability: 'process', now: () => NOON })
  const spec = (timezone: string): string =>
    writeSpec({
      job: {
        name: 'report',
        queue: 'default',
        priority: 0,
        key: null,
        onDuplicate: 'return',
        payload: { text: '1' },
        options: null,
        expiresMs: null,
      },
      rule: '0 * * * *',
      timezone,
      missed: 'once',
      overlap: 'allow',
      jitterMs: 0,
      fromAt: null,
      untilAt: null,
    })
  const texts = { 'a zone of a newer machine': spec('Mars/Base'), 'no spec at all': '{', right: spec('UTC') }
  for (const [id, text] of Object.entries(texts))
    await store.schedules.putSchedule({ id, spec: text, createdAt: NOON - 1, pausedAt: null, nextAt: NOON }, null)
  const [reported, fired]: [string[], string[]] = [[], []]
  const result = await fireDue({
    world,
    store,
    keepCancelledMs: () => 0,
    fired: (schedule, ticks, jobs) => void fired.push(`${schedule} ${ticks.length} ${jobs.length}`),
    storeFailed: (what) => void reported.push(what),
  })
  expect([result.due, result.fired]).toEqual([3, 1])
  expect(fired).toEqual(['right 1 1'])
  expect(reported.sort()).toEqual(['fire schedule "a zone of a newer machine"', 'fire schedule "no spec at all"'])
  await store.close()
})

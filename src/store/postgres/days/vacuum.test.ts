import { expect, test } from 'vitest'
import { systemTimers } from '../../../world/timers.js'
import type { PgClient } from '../connection/client.js'
import { Vacuum } from './vacuum.js'

const NOON = Date.UTC(2040, 0, 10, 12)

/** A server whose statements take until the test answers them. */
function vacuuming(connect: () => Promise<void> = () => Promise.resolve()) {
  const texts: string[] = []
  const answers: (() => void)[] = []
  const clients: { isEnded: boolean }[] = []
  const makeClient = (): PgClient => {
    const client = {
      isEnded: false,
      on: () => client,
      once: () => client,
      off: () => client,
      connect,
      unref: () => undefined,
      query: ({ text }: { text: string }) => {
        texts.push(text)
        return new Promise((resolve) => answers.push(() => resolve({ rows: [] })))
      },
      end: () => ((client.isEnded = true), Promise.resolve()),
      connection: { stream: { destroy: () => (client.isEnded = true) } },
    }
    clients.push(client)
    return client as unknown as PgClient
  }
  const vacuum = new Vacuum({ makeClient, schema: 'jobs "of" mine' }, { timers: systemTimers })
  return { vacuum, texts, answers, clients }
}

/** Until all that has been answered is done. */
async function settled(): Promise<void> {
  for (let turns = 10; turns > 0; turns -= 1) await new Promise((next) => setImmediate(next))
}

test('after 50,000 deleted rows the tables of the day are vacuumed, and then the count begins again', async () => {
  const { vacuum, texts, answers, clients } = vacuuming()
  vacuum.deleted(30_000, NOON)
  vacuum.deleted(19_999, NOON)
  await settled()
  expect(clients.length).toBe(0)
  vacuum.deleted(1, NOON)
  await expect.poll(() => texts.length).toBe(1)
  expect(texts[0]).toMatch(/^vacuum \(skip_locked, truncate off\) "jobs ""of"" mine"\.history_2040_01_10, /)
  expect(texts[0]?.match(/"jobs ""of"" mine"\./g)?.length).toBe(4)
  vacuum.deleted(60_000, NOON)
  await settled()
  expect(clients.length).toBe(1)
  answers[0]?.()
  await expect.poll(() => clients[0]?.isEnded).toBe(true)
  await settled()
  vacuum.deleted(1, NOON)
  await expect.poll(() => texts.length).toBe(2)
  answers[1]?.()
  await settled()
  vacuum.deleted(1, NOON)
  await settled()
  expect(clients.length).toBe(2)
})

test('a server that refuses the connection is asked again after as many rows', async () => {
  const { vacuum, texts, clients } = vacuuming(() => Promise.reject(new Error('too many clients')))
  vacuum.deleted(50_000, NOON)
  await expect.poll(() => clients[0]?.isEnded).toBe(true)
  await settled()
  vacuum.deleted(50_000, NOON)
  await expect.poll(() => clients.length).toBe(2)
  expect(texts).toEqual([])
})

test('a closed vacuum begins nothing, and cuts what it began', async () => {
  const { vacuum, texts, clients } = vacuuming()
  vacuum.deleted(50_000, NOON)
  await expect.poll(() => texts.length).toBe(1)
  vacuum.close()
  expect(clients[0]?.isEnded).toBe(true)
  const other = vacuuming()
  other.vacuum.close()
  other.vacuum.deleted(50_000, NOON)
  await settled()
  expect(other.clients).toEqual([])
})

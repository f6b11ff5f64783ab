import { describe, expect, test } from 'vitest'
import { job } from '../src/index.js'
import type { Change, ChangesEnd, Mill, MillEvent } from '../src/index.js'
import { seeded } from '../src/testing/simulation/random.js'
import { freshStore } from './support/fresh-store.js'
import { openedMills } from './support/opened-mills.js'

/** S4: the transitions of this process, and every change of a fleet. */

const { folder, open } = openedMills('changes', { poll: '100ms', retry: { limit: 0 } })

const mail = job('mail', async (fails: boolean) => {
  if (fails) throw new Error('no')
})

/** The consumer exists before what follows. */
async function register(mill: Mill): Promise<void> {
  const first = mill.changes('mirror', { end: true }).next()
  await mill.stopChanges('mirror')
  expect((await first).value).toEqual({ kind: 'end' })
}

describe('mill.events', () => {
  test('gives the transitions of this process, from the call on, until the mill is closed', async () => {
    const mill = await open({ jobs: [mail] })
    const seen: MillEvent[] = []
    const reading = (async () => {
      for await (const event of mill.events()) seen.push(event)
    })()
    await mill.start()
    const good = await mill.enqueue(mail, false)
    await good.result()
    const bad = await mill.enqueue(mail, true, { in: '1h' })
    await mill.cancel(bad.id)
    await mill.close()
    await reading
    const of = (id: string): unknown[] =>
      seen.flatMap((event) => (event.kind === 'transition' && event.id === id ? [event.state] : []))
    expect(of(good.id)).toEqual(['ready', 'running', 'done'])
    expect(of(bad.id)).toEqual(['scheduled', 'cancelled'])
    expect((await mill.events().next()).done).toBe(true)
  })

  test('a reader that lags behind loses the oldest, and gets their number', async () => {
    const mill = await open({ jobs: [mail] })
    const events = mill.events()
    await mill.enqueueMany(
      mail,
      Array.from({ length: 1_003 }, () => false),
    )
    expect((await events.next()).value).toEqual({ kind: 'missed', count: 3 })
    expect((await events.next()).value).toMatchObject({ kind: 'transition', state: 'ready' })
    await events.return?.()
    expect((await events.next()).done).toBe(true)
  })
})

describe('mill.changes', () => {
  test('needs changeLog, and one reader for each id', async () => {
    const without = await open({ jobs: [mail] })
    expect(() => without.changes('mirror')).toThrow('changeLog must be true')
    const mill = await open({ changeLog: true })
    const first = mill.changes('mirror')
    expect(() => mill.changes('mirror')).toThrow('is being read in this process')
    expect([await mill.stopChanges('mirror'), await mill.stopChanges('mirror')]).toEqual([true, false])
    expect((await first.next()).done).toBe(true)
    const last = mill.changes('mirror', { end: true })
    const next = last.next()
    expect(await mill.stopAllChanges()).toBe(1)
    expect((await next).value).toEqual({ kind: 'end' })
    expect((await last.next()).done).toBe(true)
    expect([
      await mill.stopChanges('mirror', { forget: true }),
      await mill.stopChanges('mirror', { forget: true }),
    ]).toEqual([true, false])
  })

  test('a consumer that is stopped, restarted and slowed at random gets every change once and in order', async () => {
    const random = seeded(7)
    const store = freshStore(folder)
    const producer = await open({ jobs: [mail], changeLog: true }, store)
    await producer.start()
    const seen = new Map<string, string[]>()
    const numbers: number[] = []
    const note = (change: Change | ChangesEnd): void => {
      if (change.kind === 'end') return
      numbers.push(change.number)
      seen.set(change.id, [...(seen.get(change.id) ?? []), change.state])
    }
    let reader = await open({ changeLog: true }, store)
    await register(reader)
    const jobs: { id: string; fails: boolean }[] = []
    const produce = async (): Promise<void> => {
      for (let n = 0; n < 60; n += 1) {
        const fails = random.next() < 0.3
        jobs.push({ id: (await producer.enqueue(mail, fails)).id, fails })
      }
    }
    const producing = produce()
    const isComplete = (): boolean =>
      jobs.length === 60 && jobs.every(({ id }) => ['done', 'failed'].includes(seen.get(id)?.at(-1) ?? ''))
    while (!isComplete()) {
      const stopAfter = 1 + Math.floor(random.next() * 20)
      let count = 0
      for await (const change of reader.changes('mirror')) {
        note(change)
        count += 1
        if (random.next() < 0.1) await new Promise((resolve) => setTimeout(resolve, 5))
        if (count === stopAfter || isComplete()) break
      }
      if (random.next() < 0.2) {
        await reader.close()
        reader = await open({ changeLog: true }, store)
      }
    }
    await producing
    expect(numbers).toEqual([...new Set(numbers)].sort((one, other) => one - other))
    for (const { id, fails } of jobs) {
      const states = seen.get(id) ?? []
      // A busy worker may release a job that it claimed, and a job that it claimed in advance may end without having been stored as running.
      expect([states[0], states.at(-1)]).toEqual(['ready', fails ? 'failed' : 'done'])
      expect(states.slice(1, -1).every((state, i) => state === (i % 2 === 0 ? 'running' : 'ready'))).toBe(true)
    }
  })

  test('without changeLog nothing is written', async () => {
    const store = freshStore(folder)
    const mill = await open({ jobs: [mail] }, store)
    await mill.start()
    await (await mill.enqueue(mail, false)).result()
    const later = await open({ jobs: [mail], changeLog: true }, store)
    await register(later)
    const { id } = await later.enqueue(mail, false)
    const changes = later.changes('mirror')
    expect((await changes.next()).value).toMatchObject({ id, state: 'ready' })
    await changes.return()
  })
})

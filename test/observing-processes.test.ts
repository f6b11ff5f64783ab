import { expect, test } from 'vitest'
import { job, millrace } from '../src/index.js'
import type { JobRecord, Mill } from '../src/index.js'
import { seeded } from '../src/testing/simulation/random.js'
import { useProcesses } from './processes/child.js'
import type { Child } from './processes/child.js'
import { rawTables } from './support/raw-tables.js'

/** S1 and S4 on real processes: workers are killed at random, and a consumer of the changes is replaced again and again. */
const processes = useProcesses()

const JOBS = 150
const KILLS = 6
const MIN = 60_000

const WORKER = `
  const work = job('work', {
    run: async (p, ctx) => {
      await new Promise((next) => setTimeout(next, p.n % 5))
      if (p.n % 7 === 0) throw new Abort('never')
      if (p.n % 3 === 0 && ctx.attempt === 1) throw new Error('once')
    },
    retry: { backoff: () => 20 },
  })
  const mill = await millrace({ store: file, jobs: { work }, changeLog: true, logger: false, poll: '100ms', lease: '2s', concurrency: 4 })
  await mill.start()
  say('started')`

/** Reads for a while, slowly at times, and leaves. */
const consumer = (stopAfter: number): string => `
  const mill = await millrace({ store: file, changeLog: true, logger: false })
  let left = ${stopAfter}
  setTimeout(() => mill.stopChanges('mirror'), 1_500)
  for await (const { id, number, state } of mill.changes('mirror')) {
    say('change', { id, number, state })
    if (left % 10 === 0) await new Promise((next) => setTimeout(next, 20))
    if ((left -= 1) === 0) break
  }
  await mill.close()
  say('left')`

test(
  'after kills at random the statistics equal a recount, and a consumer has had every change once and in order',
  { timeout: 4 * MIN },
  async () => {
    const place = processes()
    const random = seeded(20)
    const mill = await millrace({
      store: place.file,
      jobs: [job('work', async (p: { n: number }) => p.n)],
      changeLog: true,
      logger: false,
    })
    await register(mill, place.file)
    const workers = [0, 1, 2].map(() => place.run(WORKER))
    const consumers: Child[] = []
    let isOver = false
    const consuming = (async () => {
      while (!isOver) {
        const child = place.run(consumer(random.int(10, 60)))
        consumers.push(child)
        expect(await child.exited, child.errors).toBe(0)
      }
    })()
    for (let n = 0; n < JOBS; n += 1) {
      await mill.enqueue('work', { n }, { queue: n % 2 === 0 ? 'even' : 'odd' })
      if (n % Math.floor(JOBS / KILLS) !== 0) continue
      const at = random.int(0, 2)
      await (workers[at] as Child).receives('started', MIN)
      await (workers[at] as Child).kill()
      workers[at] = place.run(WORKER)
    }
    const ended = async (): Promise<number> => (await mill.count({ state: ['done', 'failed'] })).count
    await expect.poll(ended, { timeout: 2 * MIN, interval: 100 }).toBe(JOBS)
    const records: JobRecord[] = []
    for await (const record of mill.find()) records.push(record)
    expect(await counted(mill)).toEqual(recounted(records))

    const finals = (): number =>
      changesOf(consumers).filter(({ state }) => state === 'done' || state === 'failed').length
    await expect.poll(finals, { timeout: MIN, interval: 100 }).toBe(JOBS)
    isOver = true
    await consuming
    const changes = changesOf(consumers)
    expect(changes.length).toBe(new Set(changes.map(({ number }) => number)).size)
    for (const record of records) {
      const own = changes.filter(({ id }) => id === record.id)
      const states = own.map(({ state }) => state)
      expect(own.map(({ number }) => number)).toEqual(own.map(({ number }) => number).toSorted((a, b) => a - b))
      expect([states[0], states.at(-1)], states.join()).toEqual(['ready', record.state])
      expect(states.filter((state) => state === 'retrying').length, states.join()).toBe(retriesOf(record))
    }
    await mill.close()
  },
)

interface ReadChange {
  readonly id: string
  readonly number: number
  readonly state: string
}

/** In the order in which the consumers, one after the other, were given them. */
function changesOf(consumers: readonly Child[]): ReadChange[] {
  return consumers.flatMap(({ messages }) =>
    messages.filter(({ what }) => what === 'change'),
  ) as unknown as ReadChange[]
}

/** A consumer begins with the changes after its first read. */
async function register(mill: Mill, store: string): Promise<void> {
  const reading = mill.changes('mirror').next()
  const known = (): Promise<unknown[]> => rawTables(store).read((table) => `select consumer from ${table('consumers')}`)
  await expect.poll(known).toHaveLength(1)
  await mill.stopChanges('mirror')
  await reading
}

type Counts = Record<string, { ok: number; retries: number; ended: number }>

async function counted(mill: Mill): Promise<Counts> {
  const [retries, runs] = [await mill.stats.retries(), await mill.stats.processingTimes()]
  const of = (queue: string): Counts[string] => ({
    ok: retries[queue]?.ok ?? 0,
    retries: retries[queue]?.retries ?? 0,
    ended: runs[queue]?.count ?? 0,
  })
  return { even: of('even'), odd: of('odd') }
}

function recounted(records: readonly JobRecord[]): Counts {
  const of = (queue: string): Counts[string] => {
    const own = records.filter((record) => record.queue === queue)
    const ok = own.filter(({ state }) => state === 'done').length
    return { ok, retries: own.reduce((sum, record) => sum + retriesOf(record), 0), ended: own.length }
  }
  return { even: of('even'), odd: of('odd') }
}

/** Failed attempts after which it was tried again; a crash is none. */
function retriesOf({ attempts, state }: JobRecord): number {
  return attempts.filter(({ error }) => error !== undefined).length - (state === 'failed' ? 1 : 0)
}

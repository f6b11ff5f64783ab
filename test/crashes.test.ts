import { describe, expect, test } from 'vitest'
import { useProcesses } from './processes/child.js'

/** X10 on real processes: kill -9, stalls longer than a lease, blocked loops, poison pills. */
const processes = useProcesses()

const census = `
const census = []
for await (const found of mill.find({ order: 'oldest' }))
  census.push({ n: found.payload?.n, job: found.job, state: found.state, attempt: found.attempt, crashes: found.crashes, exits: found.attempts.map((a) => a.exit ?? null) })
say('census', { census })
`

describe('a worker killed with -9', () => {
  test(
    'with defaults its job runs again within 20 s, and its batch neighbours are not charged',
    { timeout: 90_000 },
    async () => {
      const jobs = `const work = job('work', async (p) => {
        say('ran', { n: p.n })
        await new Promise((next) => killing || setTimeout(next, 1_000))
        say('ended')
      })`
      const first = processes().run(`const killing = true; ${jobs}
      const mill = await millrace({ store: file, jobs: { work }, logger: false })
      await mill.enqueueMany(work, Array.from({ length: 8 }, (_, n) => ({ n })))
      await mill.start()`)
      await expect.poll(() => first.messages.filter((s) => s.what === 'ran').length, { timeout: 20_000 }).toBe(8)
      // It is up before the other dies: the promise does not include the start of a process.
      const second = processes().run(`const killing = false; ${jobs}
      const mill = await millrace({ store: file, jobs: { work }, logger: false })
      await mill.start(); say('up')
      for await (const found of mill.find()) await mill.handle(found.id).result({ timeout: '60s' })
      ${census} await mill.close()`)
      await second.receives('up')
      await first.kill()
      const killedAt = Date.now()
      const again = await second.receives('ran', 40_000)
      expect(again.at - killedAt).toBeLessThan(20_000)
      const { census: found } = (await second.receives('census', 60_000)) as unknown as {
        census: { state: string; attempt: number; crashes: number; exits: unknown[] }[]
      }
      expect(found).toHaveLength(8)
      for (const job of found)
        expect(job).toMatchObject({ state: 'done', attempt: 1, crashes: 0, exits: ['crashed', null] })
      expect(second.messages.filter((s) => s.what === 'ran')).toHaveLength(8)
      // One crash makes no suspect: the jobs run side by side, as before.
      expect(second.messages.slice(0, 9).filter((s) => s.what === 'ended')).toEqual([])
      expect(await second.exited).toBe(0)
    },
  )

  test(
    'a poison pill is parked after its crash budget, and its neighbours all finish uncharged',
    { timeout: 90_000 },
    async () => {
      const program = (enqueue: string): string => `
      const pill = job('pill', async () => { say('pill'); process.kill(process.pid, 'SIGKILL'); await new Promise(() => {}) })
      const good = job('good', async (p) => { say('good', { n: p.n }) })
      const logger = { debug() {}, info() {}, warn() {}, error: (fields, text) => say('error', { text, job: fields.job }) }
      const mill = await millrace({ store: file, jobs: { pill, good }, logger, lease: '1s', poll: '100ms' })
      ${enqueue}
      await mill.start()
      for await (const found of mill.find({ job: good })) await mill.handle(found.id).result({ timeout: '60s' })
      for (;;) {
        const [parked] = await Array.fromAsync?.(mill.find({ state: 'parked' })) ?? []
        let one = parked
        if (one === undefined) for await (const found of mill.find({ state: 'parked' })) one = found
        if (one !== undefined) break
        await new Promise((next) => setTimeout(next, 50))
      }
      ${census} await mill.close()`
      let child = processes().run(
        program(
          `await mill.enqueue(pill, { n: -1 }); await mill.enqueueMany(good, Array.from({ length: 20 }, (_, n) => ({ n })))`,
        ),
      )
      let crashes = 0
      while ((await child.exited) === 'SIGKILL') {
        crashes += 1
        // Two crashes make suspects of the ten in flight, one is in the quarantine of half of them, and three are charged.
        expect(crashes).toBeLessThanOrEqual(6)
        child = processes().run(program(''))
      }
      const { census: found } = (await child.receives('census')) as unknown as {
        census: { job: string; state: string; crashes: number; attempt: number }[]
      }
      expect(await child.receives('error')).toMatchObject({
        text: 'parked pill (its process died 3 times while it ran in quarantine)',
        job: 'pill',
      })
      expect(found.filter((job) => job.job === 'pill')).toMatchObject([{ state: 'parked', crashes: 3, attempt: 0 }])
      const good = found.filter((job) => job.job === 'good')
      expect(good).toHaveLength(20)
      for (const job of good) expect(job).toMatchObject({ state: 'done', crashes: 0, attempt: 1 })
    },
  )
})

describe('a worker that stalls', () => {
  test('longer than its lease loses its claim, and its late result is not recorded', { timeout: 60_000 }, async () => {
    const program = (who: string, start: string): string => `
      const work = job('work', async () => { say('ran'); ${start}; return '${who}' })
      const mill = await millrace({ store: file, jobs: { work }, logger: { debug() {}, info() {}, error() {}, warn: (_, m) => say('warned', { m }) }, lease: '1s', poll: '100ms' })
      await mill.start(); say('up')`
    // It reports that it ran, and only then waits: when it resumes it returns a result for a claim it no longer has.
    const first = processes().run(`${program('first', 'await new Promise((go) => setTimeout(go, 300))')}
      const handle = await mill.enqueue(work); say('id', { id: handle.id })`)
    await first.receives('ran')
    const { id } = await first.receives('id')
    first.process.kill('SIGSTOP')
    const second = processes().run(`${program('second', '')}
      say('result', { result: await mill.handle(${JSON.stringify(id)}).result({ timeout: '30s' }) })`)
    expect((await second.receives('result'))['result']).toBe('second')
    first.process.kill('SIGCONT')
    await expect
      .poll(
        () =>
          first.messages
            .filter((s) => s.what === 'warned')
            .map((s) => s['m'] as string)
            .join('; '),
        { timeout: 20_000 },
      )
      .toMatch(/lost/)
    const third = processes().run(`const mill = await millrace({ store: file, logger: false })
      const found = await mill.get(${JSON.stringify(id)}); say('record', { state: found.state, result: found.result, attempt: found.attempt, crashes: found.crashes })`)
    expect(await third.receives('record')).toMatchObject({ state: 'done', result: 'second', attempt: 1, crashes: 0 })
    expect(second.messages.filter((s) => s.what === 'ran')).toHaveLength(1)
  })

  test(
    'in a blocked event loop for three leases keeps its claim, because its heartbeat runs on a thread',
    { timeout: 60_000 },
    async () => {
      const program = (extra: string): string => `
      const work = job('work', async () => { say('ran'); const end = Date.now() + 3_000; while (Date.now() < end); say('unblocked') })
      const mill = await millrace({ store: file, jobs: { work }, logger: false, lease: '1s', poll: '100ms' })
      await mill.start(); say('up'); ${extra}`
      const first = processes().run(
        program(`const handle = await mill.enqueue(work); await handle.result(); ${census}`),
      )
      await first.receives('ran')
      const second = processes().run(program(''))
      await second.receives('up')
      const { census: found } = (await first.receives('census')) as unknown as { census: object[] }
      expect(found).toMatchObject([{ state: 'done', attempt: 1, crashes: 0 }])
      expect([...first.messages, ...second.messages].filter((s) => s.what === 'ran')).toHaveLength(1)
    },
  )
})

test('two processes on one store run every job exactly once', { timeout: 60_000 }, async () => {
  const program = (enqueue: string): string => `
    const ran = []
    const work = job('work', async (p) => { ran.push(p.n) })
    const mill = await millrace({ store: file, jobs: { work }, logger: false, poll: '20ms' })
    ${enqueue}
    await mill.start(); say('up')
    for (;;) {
      let left = 0
      for await (const _ of mill.find({ state: ['ready', 'running', 'scheduled', 'retrying'], limit: 1 })) left += 1
      if (left === 0) break
      await new Promise((next) => setTimeout(next, 20))
    }
    await mill.close(); say('ran', { ran })`
  const first = processes().run(
    program(
      `for (let i = 0; i < 20; i += 1) await mill.enqueueMany(work, Array.from({ length: 100 }, (_, n) => ({ n: i * 100 + n })))`,
    ),
  )
  const second = processes().run(program(''))
  await first.receives('up')
  const all = [
    ...((await first.receives('ran'))['ran'] as number[]),
    ...((await second.receives('ran'))['ran'] as number[]),
  ]
  expect(all.sort((a, b) => a - b)).toEqual(Array.from({ length: 2_000 }, (_, n) => n))
})

import { describe, expect, test } from 'vitest'
import { systemProcesses } from '../src/world/processes.js'
import { useProcesses } from './processes/child.js'
import type { Child } from './processes/child.js'

/** Dead and blocked workers, observed by other processes of the same machine. */
const processes = useProcesses()

const worker = (extra = ''): Child =>
  processes().run(`
    const work = job('work', async () => { say('ran'); await new Promise(() => {}) })
    const mill = await millrace({ store: file, jobs: { work }, logger: false, lease: '60s' })
    ${extra}
    await mill.start(); say('up')`)

/** With a lease of a minute, only a proof frees a job within this time. On an idle machine it takes a tenth of a second. */
const SOON_MS = 20_000

describe.skipIf(systemProcesses().own.identity === null)('a worker killed with -9', () => {
  test('has its ten jobs running again in a process of the same machine at once', { timeout: 60_000 }, async () => {
    const first = worker(`await mill.enqueueMany(work, Array.from({ length: 10 }, (_, n) => ({ n })))`)
    await expect.poll(() => first.messages.filter(({ what }) => what === 'ran').length, { timeout: 20_000 }).toBe(10)
    const second = worker()
    await second.receives('up')
    const killedAt = Date.now()
    await first.kill()
    const ran = (): number[] => second.messages.filter(({ what }) => what === 'ran').map(({ at }) => at - killedAt)
    await expect.poll(() => ran().length, { timeout: 20_000, interval: 10 }).toBe(10)
    console.log(`all ten ran again ${Math.max(...ran())} ms after the kill`)
    expect(Math.max(...ran())).toBeLessThan(SOON_MS)
  })

  test('has its job freed by a process that starts later', { timeout: 60_000 }, async () => {
    const first = worker(`await mill.enqueue(work)`)
    await first.receives('ran')
    await first.kill()
    const second = worker()
    const up = await second.receives('up')
    const again = await second.receives('ran')
    console.log(`ran again ${again.at - up.at} ms after the start`)
    expect(again.at - up.at).toBeLessThan(SOON_MS)
  })
})

import { describe, expect, test } from 'vitest'
import { useProcesses } from './processes/child.js'

/**
 * T3, the five restart cases of a durable timer, on real processes. A ballot ends at a set time; a second, later timer
 * (the sentinel) shows that the time of the first has passed, so that "it did not fire" is observed and not merely assumed.
 */
const processes = useProcesses()

const BALLOT = `
const endBallot = job('end-ballot', async (p) => say('fired', { id: p.id, now: Date.now() }))
const mill = await millrace({ store: file, jobs: { endBallot }, logger: false, poll: '60s' })
`
const schedule = (inMs: number, sentinelMs: number): string => `${BALLOT}
const due = Date.now() + ${inMs}
await mill.schedule(endBallot, { id: 'ballot' }, new Date(due), { key: 'ballot' })
await mill.schedule(endBallot, { id: 'sentinel' }, new Date(Date.now() + ${sentinelMs}), { key: 'sentinel' })
say('scheduled', { due })
`
const runUntilSentinel = `${BALLOT}
await mill.start()
say('started', { now: Date.now() })
`

const fired = (messages: readonly { what: string; id?: unknown }[]): unknown[] =>
  messages.filter((s) => s.what === 'fired').map((s) => s['id'])

async function untilSentinel(child: { messages: readonly { what: string; id?: unknown }[] }): Promise<void> {
  await expect.poll(() => fired(child.messages), { timeout: 20_000 }).toContain('sentinel')
}

describe('T3: a durable timer', () => {
  test('fires on time', async () => {
    const child = processes().run(`${schedule(500, 700)} await mill.start()`)
    const { due } = await child.receives('scheduled')
    const said = await child.receives('fired')
    expect(said['id']).toBe('ballot')
    expect(said['now']).toBeGreaterThanOrEqual(due as number)
    await untilSentinel(child)
    expect(fired(child.messages)).toEqual(['ballot', 'sentinel'])
  })

  test('fires at once when it came due while the process was down', async () => {
    const first = processes().run(schedule(50, 400))
    const { due } = await first.receives('scheduled')
    expect(await first.exited).toBe(0)
    await expect.poll(() => Date.now()).toBeGreaterThan((due as number) + 10)
    const second = processes().run(runUntilSentinel)
    const started = await second.receives('started')
    const said = await second.receives('fired')
    expect(said['id']).toBe('ballot')
    expect((said['now'] as number) - (started['now'] as number)).toBeLessThan(20_000)
    await untilSentinel(second)
  })

  test('fires on time after a restart in between', async () => {
    // On a machine that takes longer to start a process, the timer is set further ahead.
    for (const aheadMs of [2_500, 8_000, 20_000]) {
      const first = processes().run(`${schedule(aheadMs, aheadMs + 200)} await mill.start(); say('up')`)
      const { due } = await first.receives('scheduled')
      await first.receives('up')
      await first.kill()
      const second = processes().run(runUntilSentinel)
      const started = await second.receives('started')
      if ((started['now'] as number) >= (due as number)) {
        await second.kill()
        continue
      }
      const said = await second.receives('fired')
      expect(said['now']).toBeGreaterThanOrEqual(due as number)
      await untilSentinel(second)
      expect(fired(second.messages)).toEqual(['ballot', 'sentinel'])
      return
    }
    throw new Error('no process was up again within 20 s')
  })

  test('does not fire when the ballot ended early', async () => {
    const first = processes().run(`${schedule(300, 600)}
      say('unscheduled', { was: await mill.unschedule(endBallot, 'ballot'), again: await mill.unschedule(endBallot, 'ballot') })`)
    const said = await first.receives('unscheduled')
    expect([said['was'], said['again']]).toEqual([true, false])
    expect(await first.exited).toBe(0)
    const second = processes().run(runUntilSentinel)
    await untilSentinel(second)
    expect(fired(second.messages)).toEqual(['sentinel'])
  })

  test('does not fire, and nothing throws, when the ballot was deleted', async () => {
    const first = processes().run(`${schedule(300, 600)}
      for await (const found of mill.find({ key: 'ballot' })) await mill.delete(found.id)
      say('deleted', { unscheduled: await mill.unschedule(endBallot, 'ballot') })`)
    expect((await first.receives('deleted'))['unscheduled']).toBe(false)
    expect(await first.exited).toBe(0)
    const second = processes().run(runUntilSentinel)
    await untilSentinel(second)
    expect(fired(second.messages)).toEqual(['sentinel'])
  })

  test('of more than 2^31 ms waits, without an overflow', async () => {
    const child = processes().run(`${BALLOT}
      process.on('warning', (warning) => say('warned', { name: warning.name }))
      await mill.start()
      const handle = await mill.schedule(endBallot, { id: 'far' }, 2 ** 31 + 5_000)
      await mill.schedule(endBallot, { id: 'sentinel' }, '300ms')
      const { dueAt } = await handle.get()
      say('far', { inMs: dueAt.getTime() - Date.now() })`)
    expect((await child.receives('far'))['inMs']).toBeGreaterThan(2 ** 31)
    await untilSentinel(child)
    expect(fired(child.messages)).toEqual(['sentinel'])
    expect(child.messages.map((s) => s.what)).not.toContain('warned')
  })
})

import { Client } from 'pg'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { job, millrace } from '../src/index.js'
import type { Mill } from '../src/index.js'
import { startProxy } from './postgres/proxy.js'
import type { Proxy } from './postgres/proxy.js'
import { startRestartable } from './postgres/restartable.js'
import type { Follower, Restartable } from './postgres/restartable.js'

/** F1: the primary's machine fails, and the standby takes over behind the same address. */

/** How long no server accepts writes: more than two leases. The promise says 60 s, for a longer run. */
const OUTAGE_MS = Number(process.env['MILLRACE_OUTAGE_MS'] ?? 4_500)

let primary: Restartable
let standby: Follower
let line: Proxy
beforeAll(async () => {
  primary = await startRestartable()
  standby = await primary.follow()
  await ask(primary.url, `alter system set synchronous_standby_names = 'follower'`)
  await ask(primary.url, 'select pg_reload_conf()')
  const state = async () => (await ask(primary.url, 'select sync_state from pg_stat_replication'))[0]?.['sync_state']
  while ((await state()) !== 'sync') await pause(20)
  line = await startProxy(primary.url)
}, 60_000)
afterAll(async () => {
  await line?.close()
  await standby?.end()
  await primary?.end()
})

const mills = new Set<Mill>()
afterEach(async () => {
  for (const mill of mills) await mill.close({ deadline: 0 })
})

async function ask(url: string, text: string): Promise<Record<string, unknown>[]> {
  const client = new Client(url)
  await client.connect()
  try {
    return (await client.query(text)).rows as Record<string, unknown>[]
  } finally {
    await client.end()
  }
}

const pause = (ms: number): Promise<void> => new Promise((next) => setTimeout(next, ms))
const range = (count: number): number[] => Array.from({ length: count }, (_, n) => n)

/** How often each job ran, and the warnings. */
const runs = new Map<string, number>()
const warnings: string[] = []

async function open(): Promise<Mill> {
  const counted = (holdMs: number) => async (p: { id: string }) => {
    runs.set(p.id, (runs.get(p.id) ?? 0) + 1)
    await pause(holdMs)
  }
  const jobs = { quick: job('quick', counted(5)), long: job('long', counted(OUTAGE_MS + 4_500)) }
  const warn = ({ err }: { err?: unknown }, text: string): void => void warnings.push(`${text} ${String(err)}`)
  const logger = { debug() {}, info() {}, warn, error: warn }
  const mill = await millrace({ store: line.url, jobs, logger, poll: '500ms', lease: '2s', concurrency: 20 })
  mills.add(mill)
  return mill
}

/** Enqueues one after the other until `isOver`; returns what was acknowledged, and the error codes of the rest. */
async function enqueueUntil(mill: Mill, isOver: () => boolean): Promise<{ acked: string[]; codes: Set<string> }> {
  const [acked, codes] = [[] as string[], new Set<string>()]
  for (let n = 0; !isOver(); n += 1) {
    const id = `quick ${n}`
    await mill.enqueue('quick', { id }).then(
      () => acked.push(id),
      (error: { code?: string }) => codes.add(error.code ?? 'no code'),
    )
    await pause(2)
  }
  return { acked, codes }
}

test(
  'a fail-over loses nothing that was acknowledged and rescues nothing that still runs; a standby is reported as one',
  { timeout: OUTAGE_MS * 2 + 90_000 },
  async () => {
    const [first, second] = [await open(), await open()]
    await first.start()
    await second.start()
    const long = range(20).map((n) => `long ${n}`)
    await first.enqueueMany(
      'long',
      long.map((id) => ({ id })),
    )
    await expect.poll(() => long.filter((id) => runs.has(id)).length, { timeout: 10_000 }).toBe(20)
    let isOver = false
    const enqueued = enqueueUntil(first, () => isOver)
    await pause(1_500) // A claim requests no flush; within that time it has reached the standby.

    await primary.kill()
    line.lead(standby.url)
    line.reset()
    await expect(first.enqueue('quick', { id: 'refused' })).rejects.toMatchObject({ code: 'E_STORE_READ_ONLY' })
    await expect(millrace({ store: line.url, logger: false })).rejects.toMatchObject({ code: 'E_STORE_READ_ONLY' })
    await pause(OUTAGE_MS)
    expect(warnings.filter((text) => /takes no writes/.test(text))).not.toEqual([])

    await ask(standby.url, 'select pg_promote()')
    const [promotedAt, before] = [Date.now(), runs.size]
    await expect.poll(() => runs.size, { timeout: 15_000, interval: 10 }).toBeGreaterThan(before + 5)
    const resumedMs = Date.now() - promotedAt
    await pause(500)
    isOver = true
    const { acked, codes } = await enqueued
    await expect.poll(() => acked.filter((id) => !runs.has(id)).length, { timeout: 20_000 }).toBe(0)
    const left = `select (select count(*) from millrace.jobs) - (select count(*) from millrace.history) as left`
    await expect.poll(async () => Number((await ask(standby.url, left))[0]?.['left']), { timeout: 20_000 }).toBe(0)

    console.log(`work went on ${resumedMs} ms after the promotion; ${acked.length} acknowledged`)
    expect(acked.length).toBeGreaterThan(10)
    expect(
      [...codes].filter((code) => !['E_STORE_READ_ONLY', 'E_STORE_UNREACHABLE', 'E_OUTCOME_UNKNOWN'].includes(code)),
    ).toEqual([])
    expect(long.map((id) => runs.get(id))).toEqual(long.map(() => 1))
    // A claim of the last moments may not have reached the standby: such a quick job runs again, and its first settlement is refused.
    expect(warnings.filter((text) => /^rescued|^lost (?!quick)|taken for dead/.test(text))).toEqual([])
    expect(runs.has('refused')).toBe(false)
  },
)

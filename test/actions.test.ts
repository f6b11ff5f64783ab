import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest'
import { job, millrace } from '../src/index.js'
import type { BulkResult, JobRecord, Mill, State } from '../src/index.js'
import { freshStore } from './support/fresh-store.js'

/** S2 through the public API: commands on all jobs that match, and the audit trail. */

const folder = mkdtempSync(join(tmpdir(), 'millrace-actions-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const send = job('send', async (to: number) => to)
const keyed = job('keyed', async (to: number) => to)
let mill: Mill
beforeEach(async () => {
  mill = await millrace({ store: freshStore(folder), jobs: [send, keyed], logger: false })
})
afterEach(() => mill.close({ deadline: 0 }))

const numbers = (length: number): number[] => Array.from({ length }, (_, n) => n)
const enqueue = async (count: number, queue = 'mail'): Promise<string[]> =>
  (await mill.enqueueMany(send, numbers(count), { queue })).map(({ id }) => id)
async function states(): Promise<Partial<Record<State, number>>> {
  const found: Partial<Record<State, number>> = {}
  for await (const { state } of mill.find()) found[state] = (found[state] ?? 0) + 1
  return found
}
const refusal = (call: () => unknown): Promise<string> =>
  Promise.resolve()
    .then(call)
    .then(
      () => 'it resolved',
      (error: Error & { code?: string }) => `${error.code}: ${error.message}`,
    )

describe('a command on all jobs that match', () => {
  test('changes those and no others, and says how many', async () => {
    await enqueue(3)
    await enqueue(2, 'sms')
    expect(await mill.pauseAll({ queue: 'mail' })).toEqual(changed(3))
    expect(await states()).toEqual({ paused: 3, ready: 2 })
    expect(await mill.resumeAll({ job: send })).toEqual(changed(3))
    expect(await mill.cancelAll({ queue: ['mail', 'sms'] }, { reason: 'sent twice' })).toEqual(changed(5))
    const reasons: (string | undefined)[] = []
    for await (const { reason } of mill.find()) reasons.push(reason)
    expect(reasons).toEqual(Array(5).fill('sent twice'))
    expect(await mill.deleteAll({ state: 'cancelled', queue: 'sms' })).toEqual(changed(2))
    expect(await states()).toEqual({ cancelled: 3 })
  })

  test('retries cancelled jobs only when the filter names them, and skips those whose key another job holds', async () => {
    const [first] = await Promise.all([mill.enqueue(keyed, 1, { key: 'a' }), mill.enqueue(keyed, 2, { key: 'b' })])
    await mill.cancelAll({ job: keyed })
    await mill.enqueue(keyed, 3, { key: 'a' })
    expect(await mill.retryAll({ job: keyed })).toEqual(changed(0))
    expect(await mill.retryAll({ state: 'cancelled' })).toEqual({
      changed: 1,
      skipped: { held: 1, moved: 0 },
      cursor: undefined,
    })
    expect((await mill.get(first.id))?.state).toBe('cancelled')
  })

  test('works in pages, reports after each, and continues from the cursor where a limit or a signal stopped it', async () => {
    await enqueue(1_100)
    const seen: number[] = []
    const onProgress = (progress: BulkResult): void => void seen.push(progress.changed)
    const stopped = await mill.pauseAll({ queue: 'mail' }, { limit: 20, onProgress })
    expect(stopped).toMatchObject({ changed: 20, cursor: expect.any(String) })
    expect(await states()).toEqual({ paused: 20, ready: 1_080 })
    const abort = new AbortController()
    const aborted = await mill.pauseAll(
      { queue: 'mail' },
      { cursor: stopped.cursor, signal: abort.signal, onProgress: () => abort.abort() },
    )
    expect(aborted).toMatchObject({ changed: 500, cursor: expect.any(String) })
    expect(await mill.pauseAll({ queue: 'mail' }, { cursor: aborted.cursor, onProgress })).toEqual(changed(580))
    expect(seen).toEqual([20, 500, 580])
    expect(await states()).toEqual({ paused: 1_100 })
  })

  test('changes nothing under a signal that is aborted already, and returns the cursor of its beginning', async () => {
    await enqueue(3)
    const signal = AbortSignal.abort()
    const stopped = await mill.cancelAll({ queue: 'mail' }, { signal })
    expect(stopped).toEqual({ ...changed(0), cursor: expect.any(String) })
    expect(await mill.cancelAll({ queue: 'mail' }, { cursor: stopped.cursor, signal })).toEqual(stopped)
    expect(await mill.cancelAll({ queue: 'mail' }, { cursor: stopped.cursor })).toEqual(changed(3))
    expect(await mill.cancelAll({ queue: 'mail' }, { signal })).toEqual(changed(0))
  })

  test('shows in a preview what it would do, and acts on the jobs of the preview alone', async () => {
    await enqueue(4)
    const [held] = await enqueue(1)
    await mill.pause(held as string)
    await enqueue(2, 'sms')
    const preview = await mill.cancelAll({ queue: 'mail' }, { preview: true })
    expect(preview).toMatchObject({ count: 5, exact: true, states: { ready: 4, paused: 1 }, untouched: { count: 0 } })
    expect(preview.examples.map((each: JobRecord) => each.queue)).toEqual(Array(5).fill('mail'))
    expect(await states()).toEqual({ ready: 6, paused: 1 })
    const [late] = await enqueue(1)
    expect(await mill.cancelAll({ queue: 'mail' }, { cursor: preview.cursor })).toEqual(changed(5))
    expect((await mill.get(late as string))?.state).toBe('ready')
    const retry = await mill.retryAll({ queue: 'mail' }, { preview: true })
    expect(retry).toMatchObject({ count: 0, exact: true, untouched: { count: 6, exact: true }, cursor: undefined })
  })
})

describe('a filter that could not have been meant', () => {
  test.each([
    [
      {},
      undefined,
      /filter must name at least one field; to delete every job, write deleteAll\(\{\}, \{ all: true \}\)/,
    ],
    [{ queue: undefined }, undefined, /filter must name at least one field/],
    [{ queu: 'mail' }, undefined, /queu is not an option; did you mean "queue"\?/],
    [{ state: 'faild' }, undefined, /state must be one of .*, got "faild"; did you mean "failed"\?/],
    [{ state: 'running' }, undefined, /delete does not apply to a running job/],
    [{ queue: 'mail' }, { curser: '1' }, /options\.curser is not an option; did you mean "cursor"\?/],
    [{ queue: 'mail' }, { cursor: 'x' }, /options\.cursor must be the cursor that an earlier call returned, got "x"/],
    [{ queue: 'mail' }, { reason: 'late' }, /options\.reason is kept in the audit trail, which needs an actor/],
    [{ queue: 'mail' }, { limit: 0 }, /options\.limit must be a whole number of 1 or more/],
  ])('%j with %j is refused, and nothing is deleted', async (filter, options, message) => {
    await enqueue(2)
    expect(await refusal(() => mill.deleteAll(filter as never, options as never))).toMatch(message)
    expect(await states()).toEqual({ ready: 2 })
  })

  test('every job is meant when the call says so', async () => {
    await enqueue(2)
    expect(await mill.deleteAll({}, { all: true })).toEqual(changed(2))
    expect(await states()).toEqual({})
  })
})

describe('the audit trail', () => {
  test('has who gave each command, to what, why, and what it was before and after', async () => {
    const ada = { actor: 'ada', role: 'operator', reason: 'asked by phone' }
    const handle = await mill.enqueue(send, 1, { queue: 'mail', key: 'k', group: 'g' })
    const later = new Date(Date.now() + 3_600_000)
    await mill.edit(handle.id, { priority: 5, at: later, payload: 2 }, ada)
    await mill.pause(handle.id, ada)
    await mill.resume(handle.id, ada)
    await handle.cancel(ada)
    await mill.retry(handle.id, ada)
    await mill.unschedule(send, 'k', ada)
    await mill.delete(handle.id, ada)
    await mill.queue('mail').pause(ada)
    await mill.queue('mail').pauseUntil(later, ada)
    await mill.queue('mail').resume(ada)
    await mill.recurring('digest', send, 1, '0 9 * * *')
    await mill.schedules.pause('digest', ada)
    await mill.schedules.resume('digest', ada)
    await mill.schedules.runNow('digest', ada)
    await mill.deleteRecurring('digest', ada)
    await mill.group('g').seal(ada)
    const sequence = await mill.sequence(send, [1, 2], { start: false })
    await sequence.start(ada)
    await sequence.pause(ada)
    await sequence.reset(ada)
    const { rows, cursor } = await mill.audit({ limit: 100 })
    expect(cursor).toBeUndefined()
    for (const row of rows) expect(row).toMatchObject({ actor: 'ada', role: 'operator', reason: 'asked by phone' })
    const target = `job ${handle.id}`
    const next = expect.stringMatching(/^next \d{4}-/)
    expect(rows.map((row) => [row.verb, row.target, row.before, row.after]).reverse()).toEqual([
      [
        'edit',
        target,
        expect.stringMatching(/^ready, priority 0, due /),
        `scheduled, priority 5, due ${later.toISOString()}, new payload`,
      ],
      ['pause', target, 'scheduled', 'paused'],
      ['resume', target, 'paused', 'scheduled'],
      ['cancel', target, 'scheduled', 'cancelled'],
      ['retry', target, 'cancelled', 'ready'],
      ['unschedule', target, 'ready', 'cancelled'],
      ['delete', target, 'cancelled', 'deleted'],
      ['pause', 'queue mail', 'open', 'paused'],
      ['pauseUntil', 'queue mail', 'paused', `paused until ${later.toISOString()}`],
      ['resume', 'queue mail', `paused until ${later.toISOString()}`, 'open'],
      ['pause', 'schedule digest', next, 'paused'],
      ['resume', 'schedule digest', 'paused', next],
      ['runNow', 'schedule digest', next, next],
      ['deleteRecurring', 'schedule digest', undefined, 'deleted'],
      ['seal', 'group g', 'open', 'sealed'],
      ['start', `job ${sequence.id}`, 'paused', 'ready'],
      ['pause', `job ${sequence.id}`, 'ready', 'paused'],
      ['reset', `job ${sequence.id}`, 'paused', 'paused, reset'],
    ])
    expect((await mill.audit({ verb: 'pause', target })).rows).toHaveLength(1)
  })

  test('has a row for each job of a bulk and one for the whole, and none without an actor', async () => {
    await enqueue(3)
    await mill.enqueueMany(send, numbers(2), { group: 'spring' })
    await mill.pauseAll({ queue: 'mail' })
    await mill.cancelAll({ queue: 'mail' }, { actor: 'ada' })
    await mill.group('spring').cancel({ actor: 'bob' })
    const { rows } = await mill.audit()
    expect(rows.map(({ actor, verb, target, count }) => [actor, verb, target.split(' ')[0], count])).toEqual([
      ['bob', 'cancel', 'group', 2],
      ...Array(2).fill(['bob', 'cancel', 'job', 1]),
      ['ada', 'cancelAll', 'jobs', 3],
      ...Array(3).fill(['ada', 'cancelAll', 'job', 1]),
    ])
  })

  test('is read by page, and refuses what it does not know', async () => {
    for (const queue of ['a', 'b', 'c']) await mill.queue(queue).pause({ actor: 'ada' })
    const first = await mill.audit({ limit: 2 })
    const second = await mill.audit({ limit: 2, cursor: first.cursor })
    expect([...first.rows, ...second.rows].map((row) => row.target)).toEqual(['queue c', 'queue b', 'queue a'])
    expect(second.cursor).toBeUndefined()
    expect(await refusal(() => mill.audit({ actr: 'ada' } as never))).toMatch(
      /actr is not an option; did you mean "actor"/,
    )
    expect(await refusal(() => mill.audit({ cursor: 'x' }))).toMatch(/cursor must be the cursor/)
    expect(await refusal(() => mill.queue('a').pause({ reason: 'late' }))).toMatch(/needs an actor/)
    expect(await refusal(() => mill.cancel(ID, 'ada' as never))).toMatch(/did you mean \{ actor: "ada" \}/)
  })
})

const ID = '01990000-0000-7000-8000-000000000000'
const changed = (count: number): BulkResult => ({ changed: count, skipped: { held: 0, moved: 0 }, cursor: undefined })

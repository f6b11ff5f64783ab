/**
 * The errors of TypeScript for common mistakes of new users. A case states what the error must contain, and perhaps what it must
 * not contain: `@ts-expect-error says "this" not "that"`. `npm run check` verifies that each line is an error; `test/types.test.ts`
 * compiles this file with the oldest and the newest supported TypeScript, and reads the errors.
 */
import { Pool } from 'pg'
import * as v from 'valibot'
import { category, job, millrace, sqlite } from './index.js'
import type { Context, JobOptions, Mill } from './index.js'
import { postgres } from './postgres.js'

const resize = job('resize', async (p: { photo: string; width: number }, ctx) => {
  ctx.progress(1, 2)
  return { file: `${p.photo}-${p.width}.webp` }
})
const nightly = job('nightly', async () => 5)
declare const mill: Mill

// ── Payloads ────────────────────────────────────────────────────────────────────────────────────────────────────────

export async function payloads(ctx: Context): Promise<void> {
  // @ts-expect-error says "Property 'width' is missing" not "to parameter of type 'string'"
  await mill.enqueue(resize, { photo: 'cow' })
  // @ts-expect-error says "Type 'string' is not assignable to type 'number'" not "type 'Job<"
  await mill.enqueue(resize, { photo: 'cow', width: '80' })
  // @ts-expect-error says "'height' does not exist in type '{ photo: string; width: number; }'" not "type 'Job<"
  await mill.enqueue(resize, { photo: 'cow', width: 80, height: 80 })
  // @ts-expect-error says "Expected 2-3 arguments, but got 1" not "overload"
  await mill.enqueue(resize)
  // @ts-expect-error says "'delay' does not exist in type 'EnqueueOptions'" not "type 'Job<"
  await mill.enqueue(resize, { photo: 'cow', width: 80 }, { delay: 500 })
  // @ts-expect-error says "Property 'width' is missing" not "to parameter of type 'string'"
  await mill.enqueueMany(resize, [{ photo: 'cow' }])
  // @ts-expect-error says "Property 'width' is missing" not "to parameter of type 'string'"
  await mill.schedule(resize, { photo: 'cow' }, '1h')
  // @ts-expect-error says "Property 'width' is missing" not "to parameter of type 'string'"
  await mill.recurring('nightly', resize, { photo: 'cow' }, '0 3 * * *')
  // @ts-expect-error says "'tz' does not exist in type 'RecurringOptions'" not "type 'Job<"
  await mill.recurring('nightly', nightly, undefined, '0 3 * * *', { tz: 'Europe/Oslo' })
  // @ts-expect-error says "Property 'width' is missing" not "to parameter of type 'string'"
  await mill.flow((f) => f.add(resize, { photo: 'cow' }))
  // @ts-expect-error says "Property 'width' is missing" not "to parameter of type 'string'"
  mill.group('spring', { whenDone: [resize, { photo: 'cow' }] })

  // @ts-expect-error says "Expected 2-3 arguments, but got 1" not "overload"
  await ctx.enqueue(resize)
  // @ts-expect-error says "'nonsense' does not exist in type" not "overload"
  await ctx.enqueue(resize, { nonsense: 1 })
  // @ts-expect-error says "Property 'width' is missing" not "to parameter of type 'string'"
  await ctx.enqueue(resize, { photo: 'cow' })
  // @ts-expect-error says "'jobId' does not exist in type 'EnqueueOptions'" not "type 'Job<"
  await ctx.enqueue(nightly, undefined, { jobId: 'x' })
}

// ── Definitions ─────────────────────────────────────────────────────────────────────────────────────────────────────

const text = v.object({ to: v.string() })
// @ts-expect-error says "'retries' does not exist in type" not "'run' does not exist"
job('y', { run: async () => 1, retries: 3 })
// @ts-expect-error says "'retries' does not exist in type" not "'run' does not exist"
job('y', { run: async (p: { to: string }) => p.to, retries: 3 })
// @ts-expect-error says "'retries' does not exist in type" not "'input' does not exist"
job('y', { input: text, run: async (p) => p.to, retries: 3 })
// @ts-expect-error says "'attempts' does not exist in type" not "'run' does not exist"
job('y', { run: async () => 1, retry: { attempts: 3 } })
// @ts-expect-error says "type 'RetryOptions'" not "'run' does not exist"
job('y', { run: async () => 1, retry: 3 })
// @ts-expect-error says "'most' does not exist in type" not "'run' does not exist"
job('y', { run: async () => 1, limit: { most: 2 } })
// @ts-expect-error says "Property 'run' is missing" not "'queue' does not exist"
job('y', { queue: 'mail' })
// @ts-expect-error says "'attempts' does not exist in type 'CategoryOptions'"
category('y', { attempts: 3 })
const shared: JobOptions<{ to: string }, number> = { run: (p) => p.to.length, is: [category('mail')] }
/** TypeScript does not check a variable for excess properties; the job is still typed by its `run`. */
export const fromVariable: { run(p: { to: string }): Promise<number> } = job('y', shared)

// ── Stores ──────────────────────────────────────────────────────────────────────────────────────────────────────────

// @ts-expect-error says "Type 'number' is not assignable to type"
await millrace({ store: 42 })
// @ts-expect-error says "'path' does not exist in type"
await millrace({ store: { path: 'jobs.db' } })
await millrace({ store: postgres(new Pool(), { schema: 'jobs' }) })
await millrace({ store: process.env['STORE'] })
// @ts-expect-error says "'filename' does not exist in type 'SqliteOptions'"
sqlite('jobs.db', { filename: 'x' })
// @ts-expect-error says "'bogus' does not exist in type"
await millrace({ queues: { mail: { concurrency: 1, bogus: 1 } } })

// @ts-expect-error says "Type 'string' is not assignable to type 'number'"
await mill.dashboard({ port: '8080' })

// ── Commands and lists ──────────────────────────────────────────────────────────────────────────────────────────────

export async function commands(): Promise<void> {
  // @ts-expect-error says "'actr' does not exist in type 'CommandOptions"
  await mill.cancel('id', { actr: 'ada' })
  // @ts-expect-error says "'actr' does not exist in type 'AuditOptions'"
  await mill.audit({ actr: 'ada' })
  // @ts-expect-error says "'offset' does not exist in type 'PageOptions'"
  await mill.workers({ offset: 50 })
}

import { AsyncResource } from 'node:async_hooks'
import { spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { isMainThread, parentPort } from 'node:worker_threads'

/** Handlers that a thread or a process loads; the payload says what each attempt does. */
export default async function run(payload, ctx) {
  const act = acts[payload.act]
  if (act === undefined) throw new Error(`no such act: ${payload.act}`)
  return act(payload, ctx)
}

let loaded = 0
/** What an attempt that has ended does while the next one runs. */
let leftBehind = () => undefined
const acts = {
  echo: (payload, ctx) => ({ payload, attempt: ctx.attempt, job: ctx.job, pid: process.pid, runs: (loaded += 1) }),
  talk: async (payload, ctx) => {
    ctx.log('from the child', { n: 1 })
    ctx.progress(1, 2)
    const handle = await ctx.enqueue('echo', { act: 'echo', from: ctx.id })
    return { id: handle.id, isNew: handle.isNew }
  },
  parents: (payload, ctx) => ctx.results('echo'),
  item: (payload, { sequence: { index, total, previous } }) => ({ index, total, previous }),
  message: async ({ message }) => {
    if (isMainThread) process.send(message)
    else parentPort.postMessage(message)
    await new Promise((next) => setTimeout(next, 50))
    return 'sent'
  },
  fail: () => {
    throw Object.assign(new RangeError('out of range', { cause: new Error('below') }), { status: 418 })
  },
  abort: () => {
    throw Object.assign(new Error('no more'), { [Symbol.for('millrace.abort')]: true })
  },
  snooze: (payload, ctx) => {
    if (ctx.attempt === 1 && loaded++ === 0)
      throw Object.assign(new Error('later'), { [Symbol.for('millrace.snooze')]: true, delay: 10 })
    return 'woken'
  },
  exit: () => process.exit(3),
  segfault: () => process.kill(process.pid, 'SIGSEGV'),
  orphan: (payload) => {
    writeFileSync(`${payload.file}.child`, String(spawn('sleep', ['120'], { stdio: 'ignore' }).pid))
    writeFileSync(payload.file, String(process.pid))
    for (;;);
  },
  memory: () => {
    const kept = []
    for (;;) kept.push(new Array(100_000).fill(Math.random()))
  },
  spin: () => {
    for (;;);
  },
  honoursAbort: (payload, ctx) =>
    new Promise((_, reject) => {
      // The timeout may have passed while the child was starting.
      if (ctx.signal.aborted) reject(ctx.signal.reason)
      ctx.signal.addEventListener('abort', () => reject(ctx.signal.reason))
    }),
  floating: async () => {
    void Promise.reject(new Error('floating'))
    await new Promise((next) => setTimeout(next, 1_000))
  },
  later: () => {
    leftBehind = AsyncResource.bind(() =>
      setTimeout(() => {
        throw new Error('left behind')
      }, 1),
    )
    return 'returned'
  },
  slow: () => {
    leftBehind()
    return new Promise((done) => setTimeout(() => done('slow'), 300))
  },
  settle: (payload, ctx) => ctx.settleIn({}),
  badProgress: (payload, ctx) => ctx.progress(NaN),
  uncloneable: () => () => undefined,
}

import { openSync, writeSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { seededRandom } from '../random.mjs'
import { isOutage, openBooks } from './books.mjs'
import { Errands, now } from './errands.mjs'

/**
 * A typical process: it enqueues, it works, and it waits for results, all on one store. It will be killed,
 * so everything that is needed afterwards is written at once, without a buffer: acknowledgements into the pipe,
 * its runs into its diary.
 *
 * It sends `up`, `began` (its first handler), `ack id`, `result id value`, `refused code` (the server is down, where
 * that is expected) and `trouble text`, and the messages of its errands. It receives `rest` and `go` (enqueue no more, enqueue again), `calm` (no more errands), `resume queue` and `close`.
 */
const config = JSON.parse(process.argv[2])
const { millrace, job, sqlite } = await import(config.entry)
const random = seededRandom(config.seed)
const diary = openSync(config.diary, 'a')
const note = (mark, text) => writeSync(diary, `${mark} ${text}\n`)
const say = (...words) => writeSync(1, `${words.join(' ')}\n`)
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

/** Begun here, and not yet known to be recorded: these may run again when this worker loses its lease. */
const unrecorded = new Set()
/** Enqueued here and not known to have ended: bounded, so that a backlog cannot grow without end. */
let outstanding = 0
let producing = config.produce
let closing = false
let count = 0
let began = false

/** Cancels, pauses, uniqueness, transactions: for the runs that use them. */
const errands =
  config.errands === true
    ? new Errands({ job, random, say, note, run, config, books: await openBooks(config) })
    : undefined

const leaf = job('leaf', async (payload, ctx) => run(payload, ctx))
const work = job('work', {
  run: async (payload, ctx) => {
    if (payload.spawns) acknowledge(await ctx.enqueue(leaf, { n: payload.n, ms: 1 }))
    return run(payload, ctx)
  },
  // A child that could not be written because the server was down is written soon after.
  retry: { limit: 20, backoff: { start: 50, max: 200 } },
})

const mill = await millrace({
  store: config.url ?? sqlite(config.file, { durability: config.durability }),
  jobs: { work, leaf, ...errands?.jobs },
  concurrency: config.concurrency,
  lease: '1s',
  poll: '50ms',
  logger: {
    debug: () => undefined,
    info: recorded,
    warn: lost,
    error: (fields, text) => note('t', `${text} ${fields.err?.message ?? ''}`),
  },
})
const orders = createInterface({ input: process.stdin })
orders.on('close', () => process.exit(1)) // The supervisor has ended: no process may be left behind.
orders.on('line', (line) => {
  const [word, queue] = line.split(' ')
  if (word === 'rest') producing = false
  if (word === 'go') producing = true
  if (word === 'calm') errands?.calm()
  if (word === 'resume') void errands?.resume(mill, queue).catch(complain)
  if (word === 'close') {
    closing = true
    void mill.close().then(() => process.exit(0))
  }
})
await mill.start()
say('up')
void errands?.goAbout(mill, complain)
for (;;) {
  if (!producing || outstanding >= config.outstanding) await sleep(5)
  else await produce().catch(complain)
}

/** Errors that a caller must never get. A closing mill rejects calls that still wait for a result, which is allowed. */
function complain(error) {
  if (closing && error.code === 'E_CLOSED') return
  if (config.outages && isOutage(error)) return say('refused', error.code ?? 'lost')
  say('trouble', error.code ?? 'untyped', String(error.message).replaceAll('\n', ' '))
}

/** One of the ways to enqueue: one, many, later, and those of the errands. */
async function produce() {
  const kind = random.next()
  if (errands !== undefined && random.next() < 0.5) return errands.enqueue(mill, payload()).then(followIfAny)
  if (kind < 0.6) return follow(acknowledge(await mill.enqueue(work, payload())))
  if (kind < 0.7) return follow(acknowledge(await mill.enqueue(work, payload(), { in: random.between(50, 400) })))
  const many = await mill.enqueueMany(work, Array.from({ length: random.between(2, 12) }, payload))
  for (const handle of many) follow(acknowledge(handle))
}

function followIfAny(handle) {
  if (handle !== undefined) follow(acknowledge(handle))
}

function payload() {
  count += 1
  return { n: count, ms: handlerMs(), spawns: random.next() < 0.05 }
}

/** Short, and a share of them long enough that a kill at any moment finds one running. */
function handlerMs() {
  return random.next() < config.longShare ? random.between(60, 140) : random.between(0, 8)
}

function acknowledge(handle) {
  say('ack', handle.id)
  errands?.remember(handle.id)
  return handle
}

function follow(handle) {
  outstanding += 1
  void handle
    .result()
    .then((result) => say('result', handle.id, result), disappointed)
    .finally(() => (outstanding -= 1))
}

/** A caller that cancels or replaces jobs must expect that they are cancelled. */
function disappointed(error) {
  if (errands === undefined || error.code !== 'E_JOB_CANCELLED') complain(error)
}

/** One in two obeys a cancel; the others ignore it. */
async function run({ n, ms }, ctx, work = async () => undefined) {
  note('s', `${ctx.id} ${now()} ${ctx.queue.name}`)
  if (!began) say('began')
  began = true
  unrecorded.add(ctx.id)
  try {
    await sleep(ms)
    if (n % 2 === 0) ctx.signal.throwIfAborted()
    await work()
    return `r${n}`
  } catch (error) {
    if (isOutage(error)) note('f', ctx.id)
    throw error
  } finally {
    note('e', ctx.id)
  }
}

function recorded(fields) {
  if (fields.id !== undefined) unrecorded.delete(fields.id)
}

/** Declared dead while alive (a machine that stalled for a lease): the jobs in flight here may run elsewhere. */
function lost(fields, text) {
  if (!/^worker \S+ lost its lease/.test(text)) return
  for (const id of unrecorded) note('l', id)
}

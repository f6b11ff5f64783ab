import { openSync, writeSync } from 'node:fs'
import { seededRandom } from '../random.mjs'

/**
 * A process under which the disk fails once. It enqueues a few jobs, runs them and waits for their results, as a program does
 * that handles errors: it catches them, reports them, and continues.
 *
 * It sends `ack id`, `result id value`, `refused where code name text`, `told code text` (the log had a fault in it), and
 * `end` when all acknowledged jobs have ended here.
 */
const config = JSON.parse(process.argv[2])
const { millrace, job, MillraceError } = await import(config.entry)
const random = seededRandom(config.seed)
const diary = openSync(config.diary, 'a')
const say = (...words) => writeSync(1, `${words.join(' ')}\n`)
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms))
/** How often a refused call is repeated, and the pause in between. */
const TRIES = 40
const AGAIN_MS = 50
/** What was acknowledged must end within this, in the same process. */
const END_MS = 15_000

process.on('unhandledRejection', (error) => say('loose', told(error)))

const work = job('work', async ({ n, ms }, ctx) => {
  writeSync(diary, `s ${ctx.id}\n`)
  await sleep(ms)
  return `r${n}`
})

const mill = await persist('open', () =>
  millrace({
    store: config.file,
    jobs: { work },
    concurrency: 4,
    lease: '1s',
    poll: '50ms',
    logger: {
      debug: () => undefined,
      info: () => undefined,
      warn: () => undefined,
      error: (fields) => say('told', line(fields.err?.message)),
    },
  }),
)
if (mill !== undefined) await labour()
process.exit(0)

async function labour() {
  await persist('start', () => mill.start())
  const waiting = []
  for (let n = 0; n < config.jobs; n += 1) {
    if (n === config.jobs - 5) await sleep(config.restMs)
    const handle = await persist('enqueue', () => mill.enqueue(work, { n, ms: random.between(0, 10) }))
    if (handle === undefined) continue
    say('ack', handle.id)
    waiting.push(handle.result({ timeout: END_MS }).then((result) => say('result', handle.id, result)))
    await sleep(random.between(0, 8))
  }
  for (const outcome of await Promise.allSettled(waiting))
    if (outcome.status === 'rejected') say('stuck', told(outcome.reason))
  for (let left = config.drainMs / 50; left > 0 && (await isAnyLeft()); left -= 1) await sleep(50)
  await persist('close', () => mill.close())
  say('end')
}

async function isAnyLeft() {
  for await (const found of mill.find({ state: ['ready', 'running', 'scheduled', 'retrying'], limit: 1 }))
    return found !== undefined
  return false
}

/** Calls until it works, and reports each refusal. */
async function persist(where, call) {
  for (let tries = 0; tries < TRIES; tries += 1) {
    try {
      return await call()
    } catch (error) {
      say('refused', where, told(error))
      await sleep(AGAIN_MS)
    }
  }
  say('gave-up', where)
  return undefined
}

/** Typed: a Millrace error with a code; anything else is an unwrapped error of the driver. */
function told(error) {
  const code = error instanceof MillraceError ? error.code : 'UNTYPED'
  return `${code} ${error?.name} ${line(error?.message)}`
}

function line(text) {
  return String(text).replaceAll('\n', ' ')
}

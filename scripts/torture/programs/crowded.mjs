import { openSync, writeSync } from 'node:fs'
import { createInterface } from 'node:readline'

/**
 * A process on a disk that fills up: it keeps trying to enqueue and to work, at the rate of a busy program, and reports how
 * much CPU it has used when it is asked.
 *
 * It sends `ack id`, `result id value`, `refused code`, `cpu ms`; it receives `cpu`, `rest` and `close`.
 */
const config = JSON.parse(process.argv[2])
const { millrace, job, MillraceError } = await import(config.entry)
const diary = openSync(config.diary, 'a')
const say = (...words) => writeSync(1, `${words.join(' ')}\n`)
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms))
const ENQUEUE_EVERY_MS = 20
/** Large enough that the disk fills by itself too, small enough for a few thousand of them. */
const PAD = 'x'.repeat(1_000)
let producing = true

const work = job('work', async ({ n }, ctx) => {
  writeSync(diary, `s ${ctx.id}\n`)
  await sleep(n % 10 === 0 ? 500 : 5)
  return `r${n}`
})
const mill = await millrace({
  store: config.file,
  jobs: { work },
  concurrency: 4,
  lease: '2s',
  poll: '100ms',
  logger: false,
})
const orders = createInterface({ input: process.stdin })
orders.on('close', () => process.exit(1)) // The supervisor has ended: no process may be left behind.
orders.on('line', (word) => {
  const { user, system } = process.cpuUsage()
  if (word === 'cpu') say('cpu', (user + system) / 1000)
  if (word === 'rest') producing = false
  if (word === 'close') void mill.close().then(() => process.exit(0))
})
await mill.start()
say('up')
for (let n = 0; ; n += 1) {
  if (producing) await enqueue(n)
  await sleep(ENQUEUE_EVERY_MS)
}

async function enqueue(n) {
  try {
    const handle = await mill.enqueue(work, { n, pad: PAD })
    say('ack', handle.id)
    void handle.result().then((result) => say('result', handle.id, result))
  } catch (error) {
    say('refused', error instanceof MillraceError ? error.code : `UNTYPED ${String(error)}`)
  }
}

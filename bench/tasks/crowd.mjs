import { appendFileSync, closeSync, openSync, writeSync } from 'node:fs'
import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import { nowMs, Watch } from '../clock.mjs'
import { payloadOf, SMALL } from '../payloads.mjs'

/**
 * One of a crowd: enqueues and works on the shared file until its time is up, then works until its end is requested (its
 * standard input is closed). What happened is written outside of the store: `+ id` when an enqueue was acknowledged,
 * `! id` when a handler began, `- text` when a caller got an error, `? text` when a warning or an error was logged.
 */
export async function run(spec, _contestant, say) {
  const diary = openSync(spec.diary, 'a')
  const note = (mark, text) => writeSync(diary, `${mark} ${String(text).replaceAll('\n', ' ')}\n`)
  const { job, millrace } = await import(pathToFileURL(join(spec.dist, 'index.js')).href)
  const work = job('work', async (_payload, ctx) => void note('!', ctx.id))
  const log = (fields, message) => note('?', `${message} ${fields.err?.code ?? fields.error?.code ?? ''}`)
  const logger = { debug() {}, info() {}, warn: log, error: log }
  const watch = new Watch()
  const mill = await millrace({ store: spec.file, jobs: [work], logger })
  await mill.start()
  say({ ready: true })
  const told = once(process.stdin.resume(), 'end')
  await produce({ ...spec, mill, work, note })
  say({ produced: true })
  await told
  await mill.close()
  closeSync(diary)
  appendFileSync(spec.diary, 'end\n')
  return watch.stop()
}

/** One at a time, several at once and in bulk, in turn. */
async function produce({ mill, work, note, rate, seconds }) {
  const began = nowMs()
  let made = 0
  for (let turn = 0; nowMs() - began < seconds * 1000; turn += 1) {
    await setTimeout(1 + Math.random() * 40)
    const due = Math.floor(((nowMs() - began) / 1000) * rate) - made
    if (due < 1) continue
    const payloads = Array.from({ length: due }, (_, i) => payloadOf(SMALL, made + i))
    made += due
    if (turn % 2 === 0) await attempt(note, () => mill.enqueueMany(work, payloads))
    else await Promise.all(payloads.map((payload) => attempt(note, async () => [await mill.enqueue(work, payload)])))
  }
}

async function attempt(note, enqueue) {
  try {
    for (const { id } of await enqueue()) note('+', id)
  } catch (error) {
    note('-', `${error.code ?? error.name}: ${error.message}`)
  }
}

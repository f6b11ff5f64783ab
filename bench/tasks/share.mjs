import { once } from 'node:events'
import { setTimeout } from 'node:timers/promises'
import { nowMs, Watch } from '../clock.mjs'
import { payloadOf } from '../payloads.mjs'

const TELL_EVERY_MS = 20

/** One of several that run the same jobs: begins at the first line on standard input, and ends when that is closed. */
export async function run(spec, { openParty }, say) {
  const party = await openParty(spec)
  const { n: first } = payloadOf(spec.bytes ?? 20, 0)
  const seen = Buffer.alloc(spec.jobs)
  let ran = 0
  let lastAt = 0
  say({ ready: true })
  await once(process.stdin, 'data')
  const told = once(process.stdin.resume(), 'end')
  const watch = new Watch(spec.serverPid)
  await party.work((payload) => {
    seen[payload.n - first] += 1
    ran += 1
    lastAt = nowMs()
  })
  let isOver = false
  const over = told.then(() => (isOver = true))
  while (!isOver) {
    say({ ran })
    await Promise.race([setTimeout(TELL_EVERY_MS), over])
  }
  const took = watch.stop()
  await party.close()
  return { ...took, ran, lastAt, seen: seen.toString('base64') }
}

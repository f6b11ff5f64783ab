import { join } from 'node:path'
import { Child } from './child.mjs'
import { startDoomed } from './doomed-server.mjs'
import { breakGround } from './ground.mjs'
import { Progress } from './progress.mjs'
import { seededRandom } from './random.mjs'
import { Verdict } from './verdict.mjs'

/** The exit code and output of each way to end; anything else a process does is a fault. */
const ENDS = {
  exit: { how: 7, says: /^$/ },
  throw: { how: 1, says: /told to end/ },
  reject: { how: 1, says: /told to end/ },
  signal: { how: 'SIGTERM', says: /^$/ },
  close: { how: 0, says: /^$/ },
}
/** A quarter end while the mills are opened, the others within several heartbeats after that. */
const SINCE = ['imports', 'up', 'up', 'up']
const AFTER_MAX_MS = 500
const PROCESS_MAX_MS = 60_000
/** Each process leaves a chain of jobs behind, which slows down later ones. */
const EXITS_PER_STORE = 40

/**
 * Processes that end at random moments, in every way that a process ends by itself, several at a time on one store. Each must
 * end in its planned way: with that code and without other output, and never by an abort of a native library.
 */
export async function torture({ exits, processes, store, driver, seed, minutes }) {
  const verdict = new Verdict()
  const ground = await breakGround('exits')
  const server = store === 'postgres' ? await startDoomed('', ground) : undefined
  const random = seededRandom(seed)
  const progress = new Progress('exits', exits)
  const deadline = performance.now() + minutes * 60_000
  const ends = []
  let started = 0
  const targetOf = (round) =>
    server === undefined ? join(ground.room(`store-${round}`), 'jobs.db') : `${server.url}?schema=exits_${round}`
  const supervise = async () => {
    while (started < exits && performance.now() < deadline) {
      const target = targetOf(Math.floor(started / EXITS_PER_STORE))
      started += 1
      const plan = {
        way: random.pick(Object.keys(ENDS)),
        since: random.pick(SINCE),
        afterMs: random.between(0, AFTER_MAX_MS),
      }
      ends.push(await endOne({ entry: ground.entry, target, driver, ...plan }))
      progress.step()
    }
  }
  try {
    await Promise.all(Array.from({ length: processes }, supervise))
  } finally {
    progress.end()
    await server?.stop()
    ground.clear()
  }
  judge(verdict, ends, exits)
  return verdict
}

async function endOne(config) {
  let isUp = false
  // Node 22 warns that its own SQLite is experimental.
  const env = { NODE_NO_WARNINGS: '1' }
  const child = new Child('leaver', config, { env, hear: ([word]) => (isUp ||= word === 'up') })
  const late = setTimeout(() => void child.kill(), PROCESS_MAX_MS)
  const how = await child.ended
  clearTimeout(late)
  return { ...config, how, isUp, errors: child.errors.trim() }
}

function judge(verdict, ends, exits) {
  if (ends.length < exits) verdict.void(`only ${ends.length} of ${exits} processes were ended in the time given`)
  const up = ends.filter(({ isUp }) => isUp).length
  if (up < ends.length / 2) verdict.void(`only ${up} of ${ends.length} processes had started their mills`)
  const isAsTold = ({ way, how, errors }) => how === ENDS[way].how && ENDS[way].says.test(errors)
  const told = ends.filter((end) => !isAsTold(end)).map(tell)
  for (const each of told) console.log(each)
  verdict.none(
    'every process ended in its planned way',
    told,
    `${ends.length} processes, ${up} with their mills started`,
  )
}

function tell({ way, since, afterMs, how, errors }) {
  return `told to ${way} ${afterMs} ms after ${since}, ended with ${how}: ${errors.split('\n').slice(-6).join(' / ')}`
}

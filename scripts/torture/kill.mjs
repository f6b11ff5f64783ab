import { join } from 'node:path'
import { pause, until } from './child.mjs'
import { formatCensus, takeCensus } from './census.mjs'
import { Crew } from './crew.mjs'
import { countStarts } from './diary.mjs'
import { breakGround } from './ground.mjs'
import { Ledger, readLedger } from './ledger.mjs'
import { OutsideEye } from './outside-eye.mjs'
import { Progress } from './progress.mjs'
import { seededRandom } from './random.mjs'
import { makeStore } from './store.mjs'
import { Verdict } from './verdict.mjs'

/** What is left when the killing stops must be done within this. */
const DRAIN_MS = 60_000
/** One kill in twelve may hit a process that is still opening the file: that must be survived too. */
const YOUNG_SHARE = 1 / 12
/** Jobs kept waiting. */
const BACKLOG = 300
const HIT_SHARE_MIN = 0.8
const CRASH_BUDGET = 3

/** kill -9 of one process after another, on one file that all of them write. */
export async function torture(options) {
  const random = seededRandom(options.seed)
  const ground = await breakGround('kill')
  const file = join(ground.room('store'), 'jobs.db')
  const ledger = new Ledger(join(ground.folder, 'ledger.txt'))
  const config = { file, durability: 'power', concurrency: 3, outstanding: 400, produce: true }
  const crew = new Crew({ ground, ledger, random, config })
  const verdict = new Verdict()
  await makeStore(ground.entry, file)
  const eye = new OutsideEye(file)
  try {
    eye.watchSettlements()
    const kills = await killMany({ options, random, crew, eye })
    const drainedInMs = await drain(crew, eye)
    judge({ verdict, kills, drainedInMs, crew, eye, ledger: readLedger(ledger.path), options })
  } finally {
    await crew.killAll()
    eye.close()
    ledger.close()
    if (verdict.exitCode === 0) ground.clear()
    else console.log(`kept for a look: ${ground.folder}`)
  }
  return verdict
}

async function killMany({ options, random, crew, eye }) {
  const kills = { done: 0, hits: 0, running: 0, inFlight: 0, excuses: new Map(), tookMs: 0 }
  const progress = new Progress('kill', options.cycles)
  for (let i = 0; i < options.processes; i += 1) crew.start()
  const feeding = setInterval(() => feed(crew, eye), 50)
  await until(() => crew.working.length === options.processes, 30_000)
  const began = performance.now()
  const meanMs = 1000 / options.rate
  for (let cycle = 0; cycle < options.cycles; cycle += 1) {
    await pause(random.next() * 2 * meanMs)
    const young = random.next() < YOUNG_SHARE ? crew.living.filter((life) => !life.hasBegun) : []
    await until(() => crew.working.length > 0, 30_000)
    const victim = random.pick(young.length > 0 ? young : crew.working)
    if (victim === undefined || performance.now() - began > options.minutes * 60_000) break
    note(kills, await crew.kill(victim), eye)
    crew.start()
    progress.step(`hit ${kills.hits}, in flight ${kills.inFlight}, acknowledged ${crew.acknowledged}`)
  }
  clearInterval(feeding)
  progress.end()
  kills.tookMs = performance.now() - began
  return kills
}

/** Keeps a backlog: a kill of a worker with nothing to do shows nothing, and a backlog without end never drains. */
function feed(crew, eye) {
  const waiting = eye.unfinished()
  if (waiting < BACKLOG / 2) crew.produce(true)
  if (waiting > BACKLOG) crew.produce(false)
}

/** What one kill hit: handlers that ran, and runs that were not recorded yet. Each of the latter may rightly run once more. */
function note(kills, diary, eye) {
  const ended = new Set(diary.ends)
  const settled = eye.settledOf(diary.starts)
  const inFlight = new Set(diary.starts.filter((id) => !settled.has(id)))
  const running = diary.starts.filter((id) => !ended.has(id)).length
  kills.done += 1
  kills.running += running
  kills.inFlight += inFlight.size
  if (running > 0) kills.hits += 1
  for (const id of inFlight) kills.excuses.set(id, (kills.excuses.get(id) ?? 0) + 1)
}

/** Nobody enqueues any more and nobody is killed: everything must come to its end. Gives how long it took, or undefined. */
async function drain(crew, eye) {
  crew.produce(false)
  const began = performance.now()
  const drained = await until(() => eye.unfinished() === 0, DRAIN_MS, 100)
  const tookMs = performance.now() - began
  await crew.close()
  return drained ? tookMs : undefined
}

function judge({ verdict, kills, drainedInMs, crew, eye, ledger, options }) {
  const diaries = crew.diaries()
  const starts = countStarts(diaries)
  const places = eye.places()
  const census = takeCensus({ acknowledged: ledger.acknowledged, places, starts })
  const excuses = new Map(kills.excuses)
  const lost = diaries.flatMap((diary) => diary.lost)
  for (const id of lost) excuses.set(id, (excuses.get(id) ?? 0) + 1)
  const extra = [...starts.values()].reduce((sum, runs) => sum + runs - 1, 0)
  const unexcused = [...starts].filter(([id, runs]) => runs > 1 + (excuses.get(id) ?? 0))
  const results = new Map(places.map((place) => [place.id, place.history === 'done' ? place.result : undefined]))
  const forgotten = [...ledger.results].filter(([id, result]) => results.get(id) !== JSON.stringify(result))
  const twice = eye.settledTwice()
  const parkedEarly = census.of('parked').filter((id) => (kills.excuses.get(id) ?? 0) < CRASH_BUDGET)
  const silent = places.filter((place) => place.history === 'done' && !starts.has(place.id))

  console.log(formatCensus(census))
  const rate = (kills.done / kills.tookMs) * 1000
  const share = kills.hits / kills.done
  console.log(
    `${kills.done} kills (${rate.toFixed(1)} a second), ${kills.hits} hit running jobs (${(share * 100).toFixed(1)} %), ` +
      `${kills.running} handlers running and ${kills.inFlight} jobs in flight at the kills, ${extra} extra runs, ` +
      `${ledger.acknowledged.size} acknowledged, ${ledger.results.size} results given, ` +
      `${lost.length} runs whose live worker lost its lease`,
  )
  verdict.expect('every kill was made within the time', kills.done === options.cycles, `${kills.done} of ${options.cycles}`)
  verdict.expect('0 acknowledged jobs are lost', census.of('LOST').length === 0, `${census.of('LOST').length} lost`)
  verdict.expect('no job is in two places', census.of('IN TWO PLACES').length === 0, `${census.of('IN TWO PLACES').length}`)
  verdict.expect('every result that was given is on record', forgotten.length === 0, `${forgotten.length} forgotten`)
  verdict.expect(
    `0 are stuck: all drained within ${DRAIN_MS / 1000} s`,
    drainedInMs !== undefined,
    drainedInMs === undefined ? `${census.of('still waiting or running').length} left` : `in ${(drainedInMs / 1000).toFixed(1)} s`,
  )
  verdict.expect('none failed', census.of('failed or cancelled').length === 0, `${census.of('failed or cancelled').length}`)
  verdict.expect('a job is parked only after 3 kills', parkedEarly.length === 0, `${census.of('parked').length} parked`)
  verdict.expect('extra runs are at most the jobs in flight', extra <= kills.inFlight + lost.length, `${extra} of ${kills.inFlight}`)
  verdict.expect('no job ran again without a cause of its own', unexcused.length === 0, shown(unexcused))
  verdict.expect('no job was settled twice', twice.length === 0, shown(twice.map((row) => [row.id, row.times])))
  verdict.expect('no job is done without a run', silent.length === 0, `${silent.length}`)
  verdict.expect('no error reached a caller', crew.troubles.length === 0, crew.troubles.slice(0, 3).join(' | ') || '0')
  verdict.expect('the file is sound', eye.integrity() === 'ok', eye.integrity().slice(0, 200))
  if (share < HIT_SHARE_MIN) verdict.void(`only ${(share * 100).toFixed(1)} % of the kills hit running jobs, and 80 % are needed`)
}

function shown(pairs) {
  return pairs.length === 0
    ? '0'
    : `${pairs.length}, such as ${pairs.slice(0, 3).map(([id, times]) => `${id} (${times} times)`).join(', ')}`
}

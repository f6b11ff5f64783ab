import { join } from 'node:path'
import { pause, until } from './child.mjs'
import { Crew } from './crew.mjs'
import { isBusy, readDiary } from './diary.mjs'
import { breakGround } from './ground.mjs'
import { judgeKills } from './kill-judge.mjs'
import { Ledger, readLedger } from './ledger.mjs'
import { Progress } from './progress.mjs'
import { seededRandom } from './random.mjs'
import { openSite } from './site.mjs'
import { Verdict } from './verdict.mjs'

/** The remaining jobs must be done within this time after the last kill. */
const DRAIN_MS = 60_000
/** Of the kills that may miss, one in five is aimed at a process that is still opening the store. */
const YOUNG_SHARE = 0.2
/** This share is aimed at a process with a handler running; the rest may hit one between two jobs, or as it commits. */
const BUSY_SHARE = 0.8
/**
 * If a miss would bring the share of hits below this, only busy processes are chosen. A handler runs somewhere within the
 * other limit, or no process works at all.
 */
const HIT_SHARE_SOUGHT = 0.88
const BUSY_WITHIN_MS = 2000
/** A shared machine may be slow to start processes. */
const WORKING_WITHIN_MS = 120_000
/** The number of waiting jobs to keep. */
const BACKLOG = 300

/** kill -9 of one process after another, on one store that all of them write. */
export async function torture(options) {
  const run = (parts) => killMany({ ...parts, options })
  return labour({ kind: 'kill', options, run })
}

/**
 * Runs a crew on a store while `run` injects faults and returns what it hit; then all jobs must end, and every
 * promise is checked. Each process of the crew gets `config`.
 */
export async function labour({ kind, options, run, config = {} }) {
  const random = seededRandom(options.seed)
  const ground = await breakGround(kind)
  const site = await openSite(options, ground)
  const { eye, server } = site
  const ledger = new Ledger(join(ground.folder, 'ledger.txt'))
  const crew = new Crew({
    ground,
    ledger,
    random,
    config: { ...WORK, pg: import.meta.resolve('pg'), ...site.config, ...config },
  })
  const verdict = new Verdict()
  try {
    for (let i = 0; i < options.processes; i += 1) crew.start()
    const kills = await run({ random, crew, eye, server })
    const drainedInMs = await drain(crew, eye)
    await judgeKills(verdict, {
      kills,
      drainedInMs,
      drainMs: DRAIN_MS,
      crew,
      eye,
      ledger: readLedger(ledger.path),
      options,
    })
  } finally {
    await crew.killAll()
    await site.close()
    ledger.close()
    if (verdict.exitCode === 0) ground.clear()
    else console.log(`kept for a look: ${ground.folder}`)
  }
  return verdict
}

const WORK = { concurrency: 3, longShare: 0.25, outstanding: 400, produce: true, errands: true }

async function killMany({ options, random, crew, eye }) {
  const kills = newKills(options.cycles)
  const progress = new Progress('kill', options.cycles)
  const fed = keepFed(crew, eye)
  await until(() => crew.working.length === options.processes, WORKING_WITHIN_MS)
  const began = performance.now()
  const meanMs = 1000 / options.rate
  for (let cycle = 0; cycle < options.cycles; cycle += 1) {
    await pause(random.next() * 2 * meanMs)
    await until(() => crew.working.length > 0, WORKING_WITHIN_MS)
    const victim = await chooseVictim(crew, random, kills)
    if (victim === undefined || performance.now() - began > options.minutes * 60_000) break
    await note(kills, [await crew.kill(victim)], eye)
    crew.start()
    progress.step(`hit ${kills.hits}, in flight ${kills.inFlight}, acknowledged ${crew.acknowledged}`)
  }
  await fed.end()
  progress.end()
  kills.tookMs = performance.now() - began
  return kills
}

/**
 * At a random moment: mostly a process with a handler running, sometimes any. When
 * too many would have missed, the next kill waits for a busy process, as a run without hits proves nothing.
 */
async function chooseVictim(crew, random, { hits, done }) {
  const kind = random.next()
  const young = crew.living.filter((life) => !life.hasBegun)
  const isBehind = hits < (done + 1) * HIT_SHARE_SOUGHT
  if (!isBehind && kind < YOUNG_SHARE && young.length > 0) return random.pick(young)
  if (isBehind) await until(() => busyOf(crew).length > 0, BUSY_WITHIN_MS)
  const busy = kind < BUSY_SHARE || isBehind ? busyOf(crew) : []
  return random.pick(busy.length > 0 ? busy : crew.working)
}

function busyOf(crew) {
  return crew.working.filter((life) => isBusy(readDiary(life.diary)))
}

/** What was hit, and how many kills are wanted. */
export function newKills(wanted) {
  return { wanted, done: 0, hits: 0, running: 0, inFlight: 0, excuses: new Map(), tookMs: 0 }
}

/** Keeps a bounded backlog: a kill of an idle worker proves nothing, and an unbounded backlog never drains. */
export function keepFed(crew, eye) {
  let isOver = false
  const feed = async () => {
    while (!isOver) {
      const waiting = await eye.unfinished()
      if (waiting < BACKLOG / 2) crew.produce(true)
      if (waiting > BACKLOG) crew.produce(false)
      await pause(50)
    }
  }
  const feeding = feed()
  const end = () => {
    isOver = true
    return feeding
  }
  return { end }
}

/**
 * What one kill hit: handlers that had not returned, and jobs in flight, which have begun and are not recorded, so the store
 * has them as running. Each of the latter may run once more.
 */
export async function note(kills, diaries, eye) {
  const starts = diaries.flatMap((diary) => diary.starts)
  const ended = new Set(diaries.flatMap((diary) => diary.ends))
  const settled = await eye.settledOf(starts)
  // On a busy machine another process may have run and settled a job again before this read: its handler had not returned here.
  const inFlight = new Set(starts.filter((id) => !settled.has(id) || !ended.has(id)))
  kills.done += 1
  kills.running += starts.filter((id) => !ended.has(id)).length
  kills.inFlight += inFlight.size
  if (inFlight.size > 0) kills.hits += 1
  for (const id of inFlight) kills.excuses.set(id, (kills.excuses.get(id) ?? 0) + 1)
}

/** The errands are over, and no queue is left paused by a dead process. */
async function isCalm(crew, eye) {
  const paused = await eye.pausedQueues()
  crew.calm(paused)
  return paused.length === 0
}

/** No process enqueues any more and none is killed: all jobs must end. Returns how long it took, or undefined. */
async function drain(crew, eye) {
  crew.produce(false)
  const began = performance.now()
  // A process may pause its queue after the first look: it had called `pause` before it read that its errands are over.
  const drained = await until(async () => (await isCalm(crew, eye)) && (await eye.unfinished()) === 0, DRAIN_MS, 100)
  const tookMs = performance.now() - began
  await crew.close()
  return drained ? tookMs : undefined
}

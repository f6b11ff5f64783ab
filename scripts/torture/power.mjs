import { join } from 'node:path'
import { pause, until } from './child.mjs'
import { formatCensus, takeCensus } from './census.mjs'
import { Crew } from './crew.mjs'
import { countStarts } from './diary.mjs'
import { breakGround } from './ground.mjs'
import { Ledger, readLedger } from './ledger.mjs'
import { OutsideEye } from './outside-eye.mjs'
import { PowerDisk } from './power-disk.mjs'
import { Progress } from './progress.mjs'
import { seededRandom } from './random.mjs'
import { compileShim } from './shim.mjs'
import { makeStore } from './store.mjs'
import { Verdict } from './verdict.mjs'

const PROCESSES = 2
/** When the cut comes, after both are at work. Longer than a lease now and then, so that rescues are cut too. */
const CUT_MS = [50, 1_500]
const DRAIN_MS = 60_000

/**
 * Power cuts, in both modes: `power` must lose nothing that was acknowledged, and `process` must lose something, or the shim
 * did not take away what was not flushed, and the first result would prove nothing.
 */
export async function torture(options) {
  const verdict = new Verdict()
  const ground = await breakGround('power')
  const shim = compileShim('power', ground.folder)
  if (shim.skip !== undefined) {
    verdict.skip(shim.skip)
    ground.clear()
    return verdict
  }
  const full = await runMode('power', { options, ground, library: shim.library })
  const fast = await runMode('process', { options, ground, library: shim.library })
  judge(verdict, full, fast, options)
  if (verdict.exitCode === 0) ground.clear()
  else console.log(`kept for a look: ${ground.folder}`)
  return verdict
}

async function runMode(durability, { options, ground, library }) {
  const random = seededRandom(options.seed)
  const file = join(ground.room(durability), 'jobs.db')
  await makeStore(ground.entry, file)
  watch(file)
  const disk = new PowerDisk(file, join(ground.folder, `${durability}-aside`))
  const ledger = new Ledger(join(ground.folder, `${durability}-ledger.txt`))
  const config = { file, durability, concurrency: 4, outstanding: 60, produce: true }
  const crew = new Crew({ ground, ledger, random, config, env: disk.env(library) })
  const seen = { durability, cuts: 0, lostJobs: new Set(), lostResults: new Set(), broken: [], crew, ledger, drained: false }
  const mirror = ground.room(`${durability}-mirror`)
  try {
    await cutMany({ seen, options, random, disk, mirror })
    await drain(seen, file)
    report(seen, file)
  } finally {
    await crew.killAll()
    ledger.close()
  }
  return seen
}

async function cutMany({ seen, options, random, disk, mirror }) {
  const progress = new Progress(`cut (${seen.durability})`, options.cuts)
  const end = performance.now() + options.minutes * 30_000
  for (let i = 0; i < options.cuts && performance.now() < end; i += 1) {
    for (let n = 0; n < PROCESSES; n += 1) seen.crew.start()
    const began = await until(() => seen.crew.working.length === PROCESSES, 30_000)
    if (!began) seen.broken.push(`cut ${i}: the processes did not come to work on what was left`)
    await pause(random.between(...CUT_MS))
    await seen.crew.killAll()
    disk.cut()
    seen.cuts += 1
    compare(seen, disk.copyTo(mirror), i)
    progress.step(`acknowledged ${seen.crew.acknowledged}, lost ${seen.lostJobs.size}, results lost ${seen.lostResults.size}`)
  }
  progress.end()
}

/** All that was acknowledged up to this cut must be in the file. What is lost once is told once. */
function compare(seen, copy, cut) {
  const eye = new OutsideEye(copy)
  try {
    const integrity = eye.integrity()
    if (integrity !== 'ok') seen.broken.push(`cut ${cut}: ${integrity.slice(0, 200)}`)
    const places = new Map(eye.places().map((place) => [place.id, place]))
    const { acknowledged, results } = readLedger(seen.ledger.path)
    for (const id of acknowledged) if (!places.has(id)) seen.lostJobs.add(id)
    for (const [id, result] of results)
      if (places.get(id)?.history !== 'done' || places.get(id)?.result !== JSON.stringify(result)) seen.lostResults.add(id)
  } finally {
    eye.close()
  }
}

function watch(file) {
  const eye = new OutsideEye(file)
  eye.watchSettlements()
  eye.close()
}

/** The power stays on: what is left comes to its end, in a process without the shim. */
async function drain(seen, file) {
  seen.crew.produce(false)
  seen.crew.start({}, {})
  const eye = new OutsideEye(file)
  seen.drained = await until(() => eye.unfinished() === 0, DRAIN_MS, 100)
  eye.close()
  await seen.crew.close()
}

function report(seen, file) {
  const eye = new OutsideEye(file)
  const { acknowledged, results } = readLedger(seen.ledger.path)
  seen.places = eye.places()
  seen.census = takeCensus({ acknowledged, places: seen.places, starts: countStarts(seen.crew.diaries()) })
  seen.twice = eye.settledTwice().length
  seen.acknowledged = acknowledged.size
  seen.results = results.size
  eye.close()
  console.log(formatCensus(seen.census, `census, durability '${seen.durability}'`))
  console.log(
    `${seen.cuts} cuts, ${seen.acknowledged} enqueues and ${seen.results} results acknowledged, ` +
      `${seen.lostJobs.size} jobs and ${seen.lostResults.size} results lost at the cuts`,
  )
}

function judge(verdict, full, fast, options) {
  for (const seen of [full, fast]) {
    const name = `'${seen.durability}'`
    verdict.expect(`${name}: every cut was made within the time`, seen.cuts === options.cuts, `${seen.cuts} of ${options.cuts}`)
    verdict.expect(`${name}: the file is sound after each cut`, seen.broken.length === 0, seen.broken.join(' | ') || 'ok')
    verdict.expect(`${name}: what is left drains within ${DRAIN_MS / 1000} s`, seen.drained, `${seen.census.of('still waiting or running').length} left`)
    verdict.expect(`${name}: no job is in two places`, seen.census.of('IN TWO PLACES').length === 0)
    verdict.expect(`${name}: no job was settled twice`, seen.twice === 0, `${seen.twice}`)
    verdict.expect(`${name}: no error reached a caller`, seen.crew.troubles.length === 0, seen.crew.troubles.slice(0, 3).join(' | ') || '0')
  }
  const lost = full.census.of('LOST').length
  verdict.expect(`'power': 0 acknowledged jobs are lost`, full.lostJobs.size === 0 && lost === 0, `${full.lostJobs.size} of ${full.acknowledged}`)
  verdict.expect(`'power': 0 acknowledged results are lost`, full.lostResults.size === 0, `${full.lostResults.size} of ${full.results}`)
  const lostFast = fast.lostJobs.size + fast.lostResults.size
  console.log(`'process' lost ${fast.lostJobs.size} jobs and ${fast.lostResults.size} results, as it may`)
  if (lostFast === 0) verdict.void(`durability 'process' lost nothing over ${fast.cuts} cuts: the shim takes nothing away`)
}

import { join } from 'node:path'
import { pause, until } from './child.mjs'
import { formatCensus, takeCensus } from './census.mjs'
import { Crew } from './crew.mjs'
import { countStarts } from './diary.mjs'
import { breakGround } from './ground.mjs'
import { forgottenResults, Ledger, readLedger } from './ledger.mjs'
import { drains, look, makeStore } from './look.mjs'
import { PowerDisk } from './power-disk.mjs'
import { Progress } from './progress.mjs'
import { seededRandom } from './random.mjs'
import { compileShim } from './shim.mjs'
import { Verdict } from './verdict.mjs'

const PROCESSES = 2
/** The time of the cut, after both are at work. Sometimes longer than a lease, so that rescues are cut too. */
const CUT_MS = [50, 1_500]
/** Which flush of the WAL fails, when one must. */
const FAILS_AT = [2, 40]
const DRAIN_MS = 60_000

/**
 * Power cuts, in both modes: `power` must lose nothing that was acknowledged, and `process` must lose something, or the shim
 * did not remove what was not flushed, and the first result would prove nothing.
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
  makeStore(file, ground.entry)
  const disk = new PowerDisk(file, join(ground.folder, `${durability}-aside`))
  const ledger = new Ledger(join(ground.folder, `${durability}-ledger.txt`))
  const config = { file, durability, concurrency: 8, longShare: 0.05, outstanding: 20, produce: true }
  const crew = new Crew({ ground, ledger, random, config })
  const seen = {
    durability,
    cuts: 0,
    lostJobs: new Set(),
    lostResults: new Set(),
    broken: [],
    crew,
    ledger,
    drained: false,
  }
  const mirror = ground.room(`${durability}-mirror`)
  try {
    await cutMany({ seen, options, random, disk, mirror, env: disk.env(library) })
    await drain(seen, file)
    report(seen, file)
  } finally {
    await crew.killAll()
    ledger.close()
  }
  return seen
}

async function cutMany({ seen, options, random, disk, mirror, env }) {
  const progress = new Progress(`cut (${seen.durability})`, options.cuts)
  const end = performance.now() + options.minutes * 30_000
  for (let i = 0; i < options.cuts && performance.now() < end; i += 1) {
    for (let n = 0; n < PROCESSES; n += 1) seen.crew.start({ ...env, ...flaw(options, random) })
    const began = await until(() => seen.crew.working.length === PROCESSES, 30_000)
    if (!began) seen.broken.push(`cut ${i}: the processes did not come to work on what was left`)
    await pause(random.between(...CUT_MS))
    await seen.crew.killAll()
    disk.cut()
    seen.cuts += 1
    compare(seen, disk.copyTo(mirror), i)
    progress.step(
      `acknowledged ${seen.crew.acknowledged}, lost ${seen.lostJobs.size}, results lost ${seen.lostResults.size}`,
    )
  }
  progress.end()
}

/** With --failing-flushes 1, one flush of each process fails and drops its pages: what is acknowledged afterwards must still be kept. */
function flaw(options, random) {
  return options['failing-flushes'] > 0 ? PowerDisk.forgetAt(random.between(...FAILS_AT)) : {}
}

/** All that was acknowledged up to this cut must be in the file. Each loss is reported once. */
function compare(seen, copy, cut) {
  const found = look(copy)
  if (found.integrity !== 'ok') seen.broken.push(`cut ${cut}: ${found.integrity.slice(0, 200)}`)
  const present = new Set(found.places.map((place) => place.id))
  const ledger = readLedger(seen.ledger.path)
  for (const id of ledger.acknowledged) if (!present.has(id)) seen.lostJobs.add(id)
  for (const id of forgottenResults(ledger, found.places)) seen.lostResults.add(id)
}

/** The power stays on: the remaining jobs end, in processes without the shim. */
async function drain(seen, file) {
  seen.crew.produce(false)
  for (let n = 0; n < PROCESSES; n += 1) seen.crew.start()
  seen.drained = await drains(file, DRAIN_MS)
  await seen.crew.close()
}

function report(seen, file) {
  const found = look(file)
  const { acknowledged, results } = readLedger(seen.ledger.path)
  seen.census = takeCensus({ acknowledged, places: found.places, starts: countStarts(seen.crew.diaries()) })
  seen.twice = found.twice
  seen.acknowledged = acknowledged.size
  seen.results = results.size
  console.log(formatCensus(seen.census, `census, durability '${seen.durability}'`))
  console.log(
    `${seen.cuts} cuts, ${seen.acknowledged} enqueues and ${seen.results} results acknowledged, ` +
      `${seen.lostJobs.size} jobs and ${seen.lostResults.size} results lost at the cuts`,
  )
}

function judge(verdict, full, fast, options) {
  for (const seen of [full, fast]) judgeEither(verdict, seen, options)
  const lost = [...full.lostJobs, ...full.census.of('LOST')]
  verdict.none(`'power': 0 acknowledged jobs are lost`, lost, `${full.lostJobs.size} of ${full.acknowledged}`)
  verdict.none(
    `'power': 0 acknowledged results are lost`,
    [...full.lostResults],
    `${full.lostResults.size} of ${full.results}`,
  )
  if (fast.lostJobs.size + fast.lostResults.size === 0)
    verdict.void(`durability 'process' lost nothing over ${fast.cuts} cuts: the shim takes nothing away`)
}

/** What holds in both modes: the faster one may lose the last moments, and nothing else. */
function judgeEither(verdict, { durability, cuts, broken, drained, census, twice, crew }, options) {
  const left = census.of('still waiting or running').length
  const promise = (text) => `'${durability}': ${text}`
  verdict.expect(promise('every cut was made in time'), cuts === options.cuts, `${cuts} of ${options.cuts}`)
  verdict.none(promise('the file is sound after each cut'), broken)
  verdict.expect(promise(`what is left drains within ${DRAIN_MS / 1000} s`), drained, `${left} left`)
  verdict.none(promise('no job is in two tables'), census.of('IN TWO PLACES'))
  verdict.none(
    promise('no job was settled twice'),
    twice.map(({ id, times }) => `${id} ${times} times`),
  )
  if (options['failing-flushes'] === 0) verdict.none(promise('no error reached a caller'), crew.troubles)
}

import { join } from 'node:path'
import { Child, pause, until } from './child.mjs'
import { formatCensus, takeCensus } from './census.mjs'
import { countStarts, readDiary } from './diary.mjs'
import { breakGround } from './ground.mjs'
import { forgottenResults, Ledger, readLedger } from './ledger.mjs'
import { drains, look } from './look.mjs'
import { Progress } from './progress.mjs'
import { SmallDisk } from './small-disk.mjs'
import { Verdict } from './verdict.mjs'

const DISK_MEGABYTES = 24
const RESUME_MAX_MS = 10_000
const CPU_MAX_SHARE = 0.5
const TOP_UP_MS = 20
const DRAIN_MS = 30_000

/**
 * A full disk, twice: filled once, which leaves the engine what its ballast gives back, and kept full, which leaves it
 * nothing at all. Then the space is free again, without any notice to the engine.
 */
export async function torture(options) {
  const verdict = new Verdict()
  const ground = await breakGround('disk')
  const mounted = SmallDisk.mount(ground.room('small'), DISK_MEGABYTES)
  if (mounted.skip !== undefined) {
    verdict.skip(mounted.skip)
    ground.clear()
    return verdict
  }
  const { disk } = mounted
  try {
    await crowd(verdict, ground, disk, options)
  } finally {
    disk.unmount()
    ground.clear()
  }
  return verdict
}

async function crowd(verdict, ground, disk, options) {
  const file = join(disk.folder, 'jobs.db')
  const ledger = new Ledger(join(ground.folder, 'ledger.txt'))
  const diary = join(ground.folder, 'diary.txt')
  const heard = { up: false, acks: 0, results: 0, refused: new Map(), cpuMs: undefined }
  const child = new Child(
    'crowded',
    { entry: ground.entry, file, diary },
    { hear: (words) => hear(heard, ledger, words) },
  )
  const progress = new Progress('phase', 5)
  try {
    await until(() => heard.up && heard.results > 20, 20_000)
    progress.step('works')
    const windows = []
    windows.push(
      await hold({ name: 'filled once', child, heard, ms: options.seconds * 500, topUp: () => undefined, disk }),
    )
    progress.step(`full: ${describe(windows[0])}`)
    windows.push(
      await hold({ name: 'kept full', child, heard, ms: options.seconds * 500, topUp: () => disk.fill(), disk }),
    )
    progress.step(`kept full: ${describe(windows[1])}`)
    const resumedMs = await release(disk, heard)
    progress.step('freed')
    child.tell('rest')
    const drained = await drains(file, DRAIN_MS)
    progress.step('drained')
    progress.end()
    const alive = child.how === undefined
    child.tell('close')
    await until(() => child.how !== undefined, 15_000)
    judge({ verdict, file, diary, heard, windows, resumedMs, drained, alive, closed: child.how, ledger })
  } finally {
    await child.kill()
    ledger.close()
  }
}

/** Keeps the disk full for a while; returns what it cost. */
async function hold({ name, child, heard, ms, topUp, disk }) {
  disk.fill()
  const before = { ...(await cpu(child, heard)), refused: total(heard), acks: heard.acks, results: heard.results }
  const topping = setInterval(() => topUp(), TOP_UP_MS)
  await pause(ms)
  clearInterval(topping)
  const after = await cpu(child, heard)
  return {
    name,
    share: (after.cpuMs - before.cpuMs) / (after.at - before.at),
    refused: total(heard) - before.refused,
    acks: heard.acks - before.acks,
    results: heard.results - before.results,
  }
}

/** Asks the process itself, since only it can read its own usage on every platform. */
async function cpu(child, heard) {
  heard.cpuMs = undefined
  child.tell('cpu')
  await until(() => heard.cpuMs !== undefined, 10_000, 2)
  return { cpuMs: heard.cpuMs ?? Number.NaN, at: performance.now() }
}

/** How long until it enqueues and finishes jobs again by itself. */
async function release(disk, heard) {
  const { acks, results } = heard
  disk.free()
  const began = performance.now()
  const resumed = await until(() => heard.acks > acks + 5 && heard.results > results + 5, RESUME_MAX_MS * 2)
  return resumed ? performance.now() - began : undefined
}

function hear(heard, ledger, [word, ...rest]) {
  if (word === 'up') heard.up = true
  else if (word === 'ack') {
    heard.acks += 1
    ledger.acknowledge(rest[0])
  } else if (word === 'result') {
    heard.results += 1
    ledger.acknowledgeResult(rest[0], rest[1])
  } else if (word === 'refused') heard.refused.set(rest.join(' '), (heard.refused.get(rest.join(' ')) ?? 0) + 1)
  else if (word === 'cpu') heard.cpuMs = Number(rest[0])
}

function total(heard) {
  return [...heard.refused.values()].reduce((sum, times) => sum + times, 0)
}

function describe({ share, refused, acks, results }) {
  return `${percent(share)} of a core, ${acks} acknowledged, ${refused} refused, ${results} results`
}

function judge({ verdict, file, diary, heard, windows, resumedMs, drained, alive, closed, ledger }) {
  const found = look(file)
  const kept = readLedger(ledger.path)
  const starts = countStarts([readDiary(diary)])
  const census = takeCensus({ acknowledged: kept.acknowledged, places: found.places, starts })
  const other = [...heard.refused.keys()].filter((code) => code !== 'E_STORE_FULL')
  const resumed = resumedMs === undefined ? 'it did not' : `${(resumedMs / 1000).toFixed(1)} s`
  console.log(formatCensus(census))
  for (const window of windows) console.log(`${window.name}: ${describe(window)}`)
  verdict.expect('the process keeps running', alive && closed === 0, alive ? `closed with ${closed}` : 'it ended')
  verdict.none('a full disk is a typed error', other, `E_STORE_FULL ×${heard.refused.get('E_STORE_FULL') ?? 0}`)
  verdict.none(
    '0 acknowledged jobs are lost',
    census.of('LOST'),
    `${census.of('LOST').length} of ${kept.acknowledged.size}`,
  )
  verdict.none('every returned result is on record', forgottenResults(kept, found.places), `${kept.results.size} given`)
  verdict.none('no job is in two tables', census.of('IN TWO PLACES'))
  verdict.expect(`it resumes by itself within ${RESUME_MAX_MS / 1000} s`, resumedMs <= RESUME_MAX_MS, resumed)
  for (const { name, share } of windows)
    verdict.expect(`${name}: at most ${CPU_MAX_SHARE * 100} % of a core`, share <= CPU_MAX_SHARE, percent(share))
  verdict.expect('all drained when there was space', drained)
  verdict.expect('the file is sound', found.integrity === 'ok', found.integrity.slice(0, 200))
  if (windows.some((window) => window.refused === 0)) verdict.void('nothing was refused: the disk was not full')
}

function percent(share) {
  return `${(share * 100).toFixed(1)} %`
}

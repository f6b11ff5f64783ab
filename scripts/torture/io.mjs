import { join } from 'node:path'
import { breakGround } from './ground.mjs'
import { judgeFaults } from './io-judge.mjs'
import { ledgerOf, oneRun } from './io-run.mjs'
import { forgottenResults, Ledger, readLedger } from './ledger.mjs'
import { look } from './look.mjs'
import { Progress } from './progress.mjs'
import { seededRandom } from './random.mjs'
import { compileShim } from './shim.mjs'
import { Verdict } from './verdict.mjs'

const KINDS = ['write', 'sync', 'short']
/** Where faults strike: mostly anywhere; checkpoints and heartbeats are too rare for random faults. */
const ONLY = ['', '', '', 'checkpoint', 'heart']
/** The number of writes to choose from in those. */
const RARE_MAX = 3
/** How many calls in a row fail: most faults are single, some last for a while. */
const BURSTS = [1, 1, 1, 3, 12]
/** A new file this often, so that the creation of the tables is hit too; else the run continues on the last file. */
const NEW_FILE_EVERY = 4

/** The n-th write or flush of the database's files fails, one process for each n. */
export async function torture(options) {
  const verdict = new Verdict()
  const ground = await breakGround('io')
  const shim = compileShim('fault', ground.folder)
  if (shim.skip !== undefined) {
    verdict.skip(shim.skip)
    ground.clear()
    return verdict
  }
  const seen = {
    ground,
    library: shim.library,
    random: seededRandom(options.seed),
    runs: [],
    files: [],
    ledgers: new Map(),
    diaries: [],
  }
  await faultMany(seen, options)
  judgeFaults(verdict, seen, options)
  for (const ledger of seen.ledgers.values()) ledger.close()
  if (verdict.exitCode === 0) ground.clear()
  else console.log(`kept for a look: ${ground.folder}`)
  return verdict
}

async function faultMany(seen, options) {
  const progress = new Progress('fault', options.faults)
  const end = performance.now() + options.minutes * 60_000
  // A run without faults counts the writes and flushes to choose from, with a new file and with an old one.
  const [fresh, old] = [await count(seen, newFile(seen)), await count(seen, seen.files[0])]
  for (let i = 0; i < options.faults && performance.now() < end; i += 1) {
    const isNew = i % NEW_FILE_EVERY === 0
    const file = isNew ? newFile(seen) : seen.files.at(-1)
    const fault = plan(seen.random, (i + seen.random.next()) / options.faults, i, isNew ? fresh : old)
    seen.runs.push(await oneFault(seen, file, fault, i))
    progress.step(`${fault.kind} ${fault.at} x${fault.count} ${fault.only}: ${seen.runs.at(-1).summary}`)
  }
  progress.end()
}

/** Which call fails: spread evenly over a run, so that N faults cover all of it, and the rare ones by name. */
function plan(random, part, i, total) {
  const kind = KINDS[i % KINDS.length]
  const only = ONLY[i % ONLY.length]
  const most = only === '' ? total[kind === 'sync' ? 'syncs' : 'writes'] : RARE_MAX
  // A heartbeat writes and never flushes, and a checkpoint flushes once.
  if (only === 'heart') return { kind: kind === 'sync' ? 'write' : kind, only, at: 1, count: random.pick(BURSTS) }
  const at = kind === 'sync' && only === 'checkpoint' ? 1 : 1 + Math.floor(part * most)
  return { kind, only, at, count: random.pick(BURSTS) }
}

function newFile(seen) {
  const file = join(seen.ground.room(`store-${seen.files.length}`), 'jobs.db')
  seen.files.push(file)
  seen.ledgers.set(file, new Ledger(ledgerOf(file)))
  return file
}

async function count(seen, file) {
  const run = await oneRun(seen, file, { kind: 'write', only: '', at: 0, count: 0 })
  if (run.total === undefined) throw new Error(`the counting run ended with ${run.how}: ${run.errors}`)
  return run.total
}

async function oneFault(seen, file, fault, i) {
  const run = await oneRun(seen, file, fault)
  const after = look(file)
  // A clean restart, without the shim: it must open the file and finish the remaining jobs.
  const restart = await oneRun(seen, file, undefined)
  const ledger = readLedger(ledgerOf(file))
  const { places } = look(file)
  const present = new Set(places.map((place) => place.id))
  return {
    name: `fault ${i} (${fault.kind} ${fault.at} x${fault.count} ${fault.only})`,
    run,
    restart,
    integrity: after.integrity,
    lost: [...ledger.acknowledged].filter((id) => !present.has(id)),
    forgotten: forgottenResults(ledger, places),
    left: places.filter((place) => place.live !== null),
    summary: `${run.faults.length} faults, ${run.refused.length + run.told.length} told, ${run.acks} acknowledged`,
  }
}

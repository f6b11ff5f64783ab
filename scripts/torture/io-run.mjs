import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Child, until } from './child.mjs'

/** Jobs a run enqueues: enough that claims, settlements and checkpoints occur between them. */
const JOBS = 25
/** After this long without a write the engine checkpoints the WAL. */
const FOLDED_MS = 2_300
const RUN_MS = 60_000
const DRAIN_MS = 15_000

/** The ledger of a file, beside it. */
export function ledgerOf(file) {
  return `${file}.ledger.txt`
}

/** Runs one process to its end, with the shim or without it. */
export async function oneRun(seen, file, fault) {
  const diary = join(seen.ground.room('diaries'), `${seen.diaries.length}.txt`)
  const reportFile = join(seen.ground.room('reports'), `${seen.diaries.length}.txt`)
  seen.diaries.push(diary)
  const run = {
    acks: 0,
    refused: [],
    told: [],
    loose: [],
    stuck: [],
    gaveUp: [],
    ended: false,
    how: undefined,
    errors: '',
  }
  const ledger = seen.ledgers.get(file)
  const config = {
    entry: seen.ground.entry,
    file,
    diary,
    seed: seen.random.fork(),
    restMs: fault?.only === 'checkpoint' ? FOLDED_MS : 0,
    jobs: fault === undefined ? 0 : JOBS,
    drainMs: fault === undefined ? DRAIN_MS : 0,
  }
  const env = fault === undefined ? {} : shimEnv(seen.library, file, fault, reportFile)
  const child = new Child('faulted', config, { env, hear: (words) => hear(run, ledger, words) })
  if (!(await until(() => child.how !== undefined, RUN_MS))) await child.kill()
  await child.ended
  return { ...run, ...readReport(reportFile), how: child.how, errors: child.errors }
}

function shimEnv(library, file, { kind, only, at, count }, report) {
  return {
    LD_PRELOAD: library,
    TORTURE_FILE: file,
    TORTURE_FAULT: kind,
    TORTURE_ONLY: only,
    TORTURE_AT: String(at),
    TORTURE_COUNT: String(count),
    TORTURE_REPORT: report,
  }
}

function hear(run, ledger, [word, ...rest]) {
  const text = rest.join(' ')
  if (word === 'ack') {
    run.acks += 1
    ledger.acknowledge(rest[0])
  } else if (word === 'result') ledger.acknowledgeResult(rest[0], rest[1])
  else if (word === 'refused') run.refused.push(text)
  else if (word === 'told') run.told.push(text)
  else if (word === 'loose') run.loose.push(text)
  else if (word === 'stuck') run.stuck.push(text)
  else if (word === 'gave-up') run.gaveUp.push(text)
  else if (word === 'end') run.ended = true
}

/** What the shim did: where it failed a call, and how many calls there were. */
function readReport(path) {
  const lines = existsSync(path) ? readFileSync(path, 'utf8').trim().split('\n') : []
  const last = lines.findLast((line) => line.startsWith('total '))?.split(' ')
  const total = last === undefined ? undefined : { writes: Number(last[1]), syncs: Number(last[2]) }
  return { faults: lines.filter((line) => line.startsWith('fault ')).map((line) => line.slice(6)), total }
}

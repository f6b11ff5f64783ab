import { closeSync, openSync, readFileSync, writeSync } from 'node:fs'

/**
 * What was acknowledged, kept outside the database in an append-only file: an id is in it only because a child's line about
 * it reached the supervisor, which is all that a caller in another process can know.
 */
export class Ledger {
  path
  #file
  constructor(path) {
    this.path = path
    this.#file = openSync(path, 'a')
  }

  acknowledge(id) {
    writeSync(this.#file, `ack ${id}\n`)
  }
  /** A caller got this result. */
  acknowledgeResult(id, result) {
    writeSync(this.#file, `result ${id} ${result}\n`)
  }

  /** Any other message of a child that is needed afterwards. */
  note(words) {
    writeSync(this.#file, `${words.join(' ')}\n`)
  }

  close() {
    closeSync(this.#file)
  }
}

/**
 * The ledger for the census: read from the file, not from memory.
 * @returns {{ acknowledged: Set<string>, results: Map<string, string>, calledOff: Set<string>, cancelled: Map<string, bigint>,
 *   undone: Set<string>, pauses: { queue: string, at: bigint }[], resumes: { queue: string, at: bigint }[] }}
 */
export function readLedger(path) {
  const ledger = {
    acknowledged: new Set(),
    results: new Map(),
    calledOff: new Set(),
    cancelled: new Map(),
    undone: new Set(),
    pauses: [],
    resumes: [],
  }
  for (const line of readFileSync(path, 'utf8').split('\n')) enter(ledger, line.split(' '))
  return ledger
}

function enter(ledger, [word, subject, value]) {
  if (word === 'ack') ledger.acknowledged.add(subject)
  else if (word === 'result') ledger.results.set(subject, value)
  else if (word === 'calloff') ledger.calledOff.add(subject)
  else if (word === 'cancelled' && !ledger.cancelled.has(subject)) ledger.cancelled.set(subject, BigInt(value))
  else if (word === 'undone') ledger.undone.add(subject)
  else if (word === 'paused') ledger.pauses.push({ queue: subject, at: BigInt(value) })
  else if (word === 'resuming') ledger.resumes.push({ queue: subject, at: BigInt(value) })
}

/** Jobs whose result a caller got and that is not, or no longer, on record unchanged. */
export function forgottenResults({ results }, places) {
  const kept = new Map(places.map((place) => [place.id, place]))
  const isKept = (id, result) => kept.get(id)?.history === 'done' && kept.get(id).result === JSON.stringify(result)
  return [...results].filter(([id, result]) => !isKept(id, result)).map(([id]) => id)
}

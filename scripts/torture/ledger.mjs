import { closeSync, openSync, readFileSync, writeSync } from 'node:fs'

/**
 * What was acknowledged, kept outside the database in an append-only file: an id is in it only because a child's line about
 * it reached the supervisor, which is the most a caller in another process can ever know.
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
  /** A caller was given this result. */
  acknowledgeResult(id, result) {
    writeSync(this.#file, `result ${id} ${result}\n`)
  }

  close() {
    closeSync(this.#file)
  }
}

/**
 * The ledger as the census reads it: from the file, not from memory.
 * @returns {{ acknowledged: Set<string>, results: Map<string, string> }}
 */
export function readLedger(path) {
  const acknowledged = new Set()
  const results = new Map()
  for (const line of readFileSync(path, 'utf8').split('\n')) {
    const [word, id, result] = line.split(' ')
    if (word === 'ack') acknowledged.add(id)
    if (word === 'result') results.set(id, result)
  }
  return { acknowledged, results }
}

/** Jobs whose result was given to a caller and is not, or no longer, on record as it was given. */
export function forgottenResults({ results }, places) {
  const kept = new Map(places.map((place) => [place.id, place]))
  const isKept = (id, result) => kept.get(id)?.history === 'done' && kept.get(id).result === JSON.stringify(result)
  return [...results].filter(([id, result]) => !isKept(id, result)).map(([id]) => id)
}

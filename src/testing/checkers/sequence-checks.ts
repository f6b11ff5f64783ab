import { itemAddress } from '../../job/rules/sequence.js'
import type { Census, CensusJob, CensusSequence } from '../../store/census.js'
import { BrokenPromise } from './broken-promise.js'

/** Where the result of an item came from: the claim and the run whose handler returned it. */
export interface ItemOrigin {
  readonly id: string
  readonly run: number
  readonly index: number
  readonly fence: number
}

export interface SequenceFacts {
  /** The handler run that returned this stored result; undefined when the results of this job are not known. */
  readonly originOf?: ((value: string) => ItemOrigin | undefined) | undefined
}

/**
 * Sequences (G3, G4, G6): the rows of a run are the items 0, 1, 2 … without a hole, with at most one open row after them;
 * a row never changes; it is written only while a claim holds its job, by that claim; it is all there when the sequence
 * is done; and only a reset, which begins another run, lets the number of rows fall.
 */
export class SequenceChecker {
  #before = new Map<string, CensusSequence>()

  check(jobsBefore: ReadonlyMap<string, CensusJob>, census: Census, facts: SequenceFacts): void {
    if (census.sequences.length === 0 && this.#before.size === 0) return
    const jobs = new Map(census.jobs.map((job) => [job.id, job]))
    for (const sequence of census.sequences) {
      const [was, job] = [this.#before.get(sequence.id), jobs.get(sequence.id)]
      checkRows(sequence)
      checkWhole(sequence, job)
      if (was !== undefined) checkGrowth(was, sequence)
      checkOrigins(was, sequence, jobsBefore.get(sequence.id), facts)
    }
    this.#before = new Map(census.sequences.map((sequence) => [sequence.id, sequence]))
  }

  /** Ids of sequences that were reset since the last check. */
  resets(census: Census): ReadonlySet<string> {
    const reset = census.sequences.filter(({ id, run }) => run > (this.#before.get(id)?.run ?? run))
    return new Set(reset.map(({ id }) => id))
  }
}

function answered({ rows }: CensusSequence): CensusSequence['rows'] {
  return rows.filter(({ no }) => no !== null)
}

function checkRows({ id, rows }: CensusSequence): void {
  for (const [index, { address, no }] of rows.entries()) {
    if (address !== itemAddress(index))
      throw new BrokenPromise(`G3: sequence ${id} has item ${Number(address)} where item ${index} should be`)
    if (no !== null && no !== index) throw new BrokenPromise(`G3: item ${index} of sequence ${id} has the number ${no}`)
    if (no === null && index + 1 < rows.length)
      throw new BrokenPromise(`G3: sequence ${id} went on after item ${index}, which is not recorded`)
  }
}

/** A sequence appears with all its items, and is done with all its rows. */
function checkWhole(sequence: CensusSequence, job: CensusJob | undefined): void {
  const { id, total, items } = sequence
  if (items !== total) throw new BrokenPromise(`G2: sequence ${id} has ${items} items of ${total}`)
  const done = answered(sequence).length
  if (job?.state === 'done' && done !== total)
    throw new BrokenPromise(`G3: sequence ${id} is done with ${done} items of ${total}`)
  if (done > total) throw new BrokenPromise(`G3: sequence ${id} has ${done} rows for ${total} items`)
}

function checkGrowth(was: CensusSequence, sequence: CensusSequence): void {
  if (sequence.run < was.run) throw new BrokenPromise(`G4: sequence ${sequence.id} went back to run ${sequence.run}`)
  if (sequence.run > was.run) {
    if (sequence.rows.length > 0)
      throw new BrokenPromise(`G4: sequence ${sequence.id} was reset and still has ${sequence.rows.length} rows`)
    return
  }
  const rows = answered(sequence)
  for (const [index, { value }] of answered(was).entries())
    if (rows[index]?.value !== value)
      throw new BrokenPromise(`G3: item ${index} of sequence ${sequence.id} was recorded twice, or its row was lost`)
}

/** A row that is new since the last check was written by the claim that held the job then. */
function checkOrigins(
  was: CensusSequence | undefined,
  sequence: CensusSequence,
  jobBefore: CensusJob | undefined,
  { originOf }: SequenceFacts,
): void {
  const known = was?.run === sequence.run ? answered(was).length : 0
  for (const { address, value } of answered(sequence).slice(known)) {
    const index = Number(address)
    if (jobBefore !== undefined && jobBefore.fence === null)
      throw new BrokenPromise(`G4: item ${index} of sequence ${sequence.id} was recorded though no claim held it`)
    const origin = value === null ? undefined : originOf?.(value)
    if (origin === undefined) continue
    if (origin.id !== sequence.id || origin.index !== index || origin.run !== sequence.run)
      throw new BrokenPromise(
        `G3: item ${index} of sequence ${sequence.id} has the result of ${JSON.stringify(origin)}`,
      )
    if (jobBefore !== undefined && origin.fence !== jobBefore.fence)
      throw new BrokenPromise(`G4: item ${index} of sequence ${sequence.id} was recorded by a claim that had lost it`)
  }
}

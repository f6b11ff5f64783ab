import type { ErrorRecord } from '../../codec/error-text.js'
import { readOptions } from '../../job/definition/stored-options.js'
import { itemAddress } from '../../job/rules/sequence.js'
import type { Encoded } from '../../job/rules/outcome.js'
import { isSealed } from '../../job/secrets/keyring.js'
import type { Binding, Keyring, Owner } from '../../job/secrets/keyring.js'
import { isReadableError, isSecretReason } from '../../job/secrets/secret-ends.js'
import type { OnDuplicate } from '../../job/rules/unique.js'
import type { ClaimedSequence, NewStep } from '../sequences.js'
import type { ClaimedJob, JobRow, NewJob, SettledJob } from '../store.js'
import {
  openError,
  openLog,
  openOptions,
  openProgress,
  openText,
  openValue,
  sealError,
  sealLog,
  sealNote,
  sealOptions,
  sealValue,
} from './sealed-values.js'

/** Seals and opens whole records of the store contract. */

type Keyed = Pick<JobRow, 'id' | 'name' | 'key' | 'options'>

/** The slot is read only when a value is bound to it. */
export function ownerOf({ id, name, key, options }: Keyed): Owner {
  return {
    id,
    name,
    key,
    get slot() {
      return readOptions(options).unique?.key
    },
  }
}

/**
 * What the payload of a new job is bound to. `schedule` and a unique 'reschedule' give the payload to the job that holds
 * the key or the slot already, whose id is not known yet.
 */
export function bindingOf({ key, unique }: NewJob, onDuplicate: OnDuplicate): Binding {
  const mayMove = key !== null && onDuplicate === 'move'
  const mayReschedule = unique?.onDuplicate === 'reschedule'
  if (mayMove) return mayReschedule ? 'name' : 'key'
  return mayReschedule ? 'slot' : 'job'
}

export function sealNewJob(keys: Keyring, job: NewJob, onDuplicate: OnDuplicate): NewJob {
  const binding = bindingOf(job, onDuplicate)
  const owner = { id: job.id, name: job.name, key: job.key, slot: job.unique?.key }
  return {
    ...job,
    payload: sealValue(keys, job.payload, owner, 'payload', binding),
    options: sealOptions(keys, job.options, owner, binding),
  }
}

/** A row whose job was never encrypted is returned as it is. */
export function openRow(keys: Keyring, row: JobRow): JobRow {
  const owner = ownerOf(row)
  return {
    ...row,
    payload: openValue(keys, row.payload, owner, 'payload'),
    options: openOptions(keys, row.options, owner),
    result: openValue(keys, row.result, owner, 'result'),
    error: openError(keys, row.error, owner),
    reason: openText(keys, row.reason, owner, 'reason'),
    log: openLog(keys, row.log, owner),
    progress: openProgress(keys, row.progress, owner),
  }
}

/** A job that the store wrote itself, as it was given. Its options stay sealed: `meta` is the only sealed one. */
export function openNewJob(keys: Keyring, job: NewJob): NewJob {
  return isSealed(job.payload) ? { ...job, payload: openValue(keys, job.payload, ownerOf(job), 'payload') } : job
}

/** Its log stays sealed: the worker only appends to it. */
export function openClaimed<Job extends ClaimedJob>(keys: Keyring, job: Job): Job {
  const { sequence } = job
  if (sequence !== undefined) return { ...job, sequence: openSequence(keys, sequence, ownerOf(job)) }
  return isSealed(job.payload) ? { ...job, payload: openValue(keys, job.payload, ownerOf(job), 'payload') } : job
}

function openSequence(keys: Keyring, sequence: ClaimedSequence, owner: Owner): ClaimedSequence {
  const { index, previous, items } = sequence
  return {
    ...sequence,
    previous: openValue(keys, previous, owner, valuePart(itemAddress(index - 1))),
    items: openItems(keys, items, index, owner),
  }
}

export function openItems(keys: Keyring, items: readonly Encoded[], from: number, owner: Owner): readonly Encoded[] {
  return items.map((item, i) => openValue(keys, item, owner, itemPart(from + i)))
}

export function sealItems(keys: Keyring, items: readonly Encoded[], from: number, owner: Owner): readonly Encoded[] {
  return items.map((item, i) => sealValue(keys, item, owner, itemPart(from + i)))
}

const itemPart = (index: number): string => `item ${index}`

/** Where a step's value and error belong: to its address, whatever the run. */
export const valuePart = (address: string): string => `step ${address}`
export const errorPart = (address: string): string => `step-error ${address}`

export function sealStep(keys: Keyring, step: NewStep, owner: Owner): NewStep {
  const { address, value, error, note } = step
  return {
    ...step,
    value: value === null ? null : sealValue(keys, value, owner, valuePart(address)),
    error: error === null ? null : sealError(keys, error, owner, errorPart(address)),
    note: sealNote(keys, note, owner, address),
  }
}

export function sealSettled<Settled extends SettledJob>(keys: Keyring, settled: Settled): Settled {
  const owner = { id: settled.id, name: settled.name, key: settled.key }
  const { result, error, reason, log, step } = settled
  const isPlain = error === null || isReadableError(JSON.parse(error) as ErrorRecord)
  return {
    ...settled,
    result: result === null ? null : sealValue(keys, result, owner, 'result'),
    error: isPlain ? error : sealError(keys, error, owner),
    statistics: withoutError(settled.statistics),
    reason: reason !== null && isSecretReason(settled) ? keys.seal(reason, owner, 'reason') : reason,
    log: sealLog(keys, log, owner),
    ...(step === undefined ? {} : { step: sealStep(keys, step, owner) }),
  }
}

/** Failures are counted and grouped by their fingerprint, which is a digest; what they say is in the sealed error alone. */
function withoutError(statistics: SettledJob['statistics']): SettledJob['statistics'] {
  if (statistics?.failure == null) return statistics
  return { ...statistics, failure: { ...statistics.failure, error: 'encrypted', place: '', message: null } }
}

/** A settlement as it was written. */
export function openSettled(keys: Keyring, settled: SettledJob): SettledJob {
  const owner = { id: settled.id, name: settled.name, key: settled.key }
  return {
    ...settled,
    result: openValue(keys, settled.result, owner, 'result'),
    error: openError(keys, settled.error, owner),
    reason: openText(keys, settled.reason, owner, 'reason'),
    log: openLog(keys, settled.log, owner),
  }
}

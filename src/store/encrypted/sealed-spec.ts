import { fromStoredValue } from '../../job/definition/stored-options.js'
import type { StoredValue } from '../../job/definition/stored-options.js'
import { isSealed } from '../../job/secrets/keyring.js'
import type { Keyring, Owner } from '../../job/secrets/keyring.js'
import { openOptions, openValue, sealOptions, sealValue } from './sealed-values.js'

/** The part of a schedule's definition that belongs to its jobs: the payload and the options of each. */
interface Spec {
  readonly job: { readonly name: string; readonly payload: StoredValue; readonly options: string | null }
}

/** The payload of a recurring job is bound to the schedule, as that of each of its jobs is to the job. */
const ownerOf = (schedule: string, { job }: Spec): Owner => ({ id: `schedule ${schedule}`, name: job.name })

export function sealSpec(
  keys: Keyring,
  schedule: string,
  text: string,
  seals: { readonly has: (name: string | undefined) => boolean },
): string {
  const spec = JSON.parse(text) as Spec
  // The store contract allows any text; only one with a job has a secret.
  if (!seals.has((spec as Partial<Spec>).job?.name)) return text
  const owner = ownerOf(schedule, spec)
  const payload = { text: sealValue(keys, fromStoredValue(spec.job.payload), owner, 'payload') }
  return JSON.stringify({ ...spec, job: { ...spec.job, payload, options: sealOptions(keys, spec.job.options, owner) } })
}

/** The same text as before it was sealed. */
export function openSpec(keys: Keyring, schedule: string, text: string): string {
  if (!text.includes('encrypted')) return text
  const spec = JSON.parse(text) as Spec
  const stored = fromStoredValue(spec.job.payload)
  if (!isSealed(stored)) return text
  const owner = ownerOf(schedule, spec)
  const opened = openValue(keys, stored, owner, 'payload')
  const payload = typeof opened === 'string' ? { text: opened } : { base64: Buffer.from(opened).toString('base64') }
  return JSON.stringify({ ...spec, job: { ...spec.job, payload, options: openOptions(keys, spec.job.options, owner) } })
}

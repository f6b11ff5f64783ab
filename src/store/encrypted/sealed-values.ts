import type { ErrorRecord } from '../../codec/error-text.js'
import { readLog } from '../../job/attempt/attempt-log.js'
import { fromStoredValue, readOptions, writeOptions } from '../../job/definition/stored-options.js'
import type { AttemptEntry } from '../../job/rules/decide.js'
import type { Encoded } from '../../job/rules/outcome.js'
import { isSealed, keyOf } from '../../job/secrets/keyring.js'
import type { Binding, Keyring, Owner } from '../../job/secrets/keyring.js'
import { writeJobError } from '../../job/statistics/failure.js'
import { isReadableError } from '../../job/secrets/secret-ends.js'
import type { StepNote } from '../sequences.js'

/*
 * How each kind of stored text is sealed. A payload or a result is replaced as a whole. Texts that stores or other
 * readers parse keep their outer form: an error stays a record with a name and a message, the log stays a list of
 * attempts with their times, and the secret part of each is one sealed text in the field `sealed`. Opening never
 * throws: what cannot be opened here stays sealed, and says with which key.
 */

/** A record that is shown where its text is not. */
interface SealedFields {
  readonly sealed?: string | undefined
}

/** What could not be opened when it was read is written back as it is. */
export function sealValue(keys: Keyring, value: Encoded, owner: Owner, part: string, binding?: Binding): string {
  return isSealed(value) ? value : keys.seal(value, owner, part, binding)
}

/** The value, or the sealed text if it cannot be opened here: the codec refuses that, with the reason. */
export function openValue<T extends Encoded | null>(keys: Keyring, value: T, owner: Owner, part: string): T {
  if (!isSealed(value)) return value
  try {
    return keys.open(value, owner, part) as T
  } catch {
    return value
  }
}

/** A text for people. */
export function openText(keys: Keyring, text: string | null, owner: Owner, part: string): string | null {
  const opened = openValue(keys, text, owner, part)
  return isSealed(opened) ? encryptedWith(opened) : opened
}

export function sealError(keys: Keyring, error: string, owner: Owner, part = 'error'): string {
  const sealed = keys.seal(error, owner, part)
  return writeJobError({ ...placeholder(sealed), sealed } as ErrorRecord, fingerprintIn(error))
}

export function openError(keys: Keyring, error: string | null, owner: Owner, part = 'error'): string | null {
  const sealed = sealedError(error)
  if (sealed === undefined) return error
  const opened = openValue(keys, sealed, owner, part)
  return isSealed(opened) ? writeJobError(placeholder(sealed), fingerprintIn(error ?? '')) : opened
}

/** A digest, which holds no secret: it stays readable. */
function fingerprintIn(error: string): string | undefined {
  return FINGERPRINTED.exec(error)?.[1]
}
const FINGERPRINTED = /^\{"fingerprint":"([0-9a-f]+)",/

/** The sealed text inside of an error. A text that is no record, such as the reason of a cancel, is sealed in the same way. */
export function sealedError(error: string | null): string | undefined {
  if (error?.replace(FINGERPRINTED, '{').startsWith(`{"name":"${ENCRYPTED}"`) !== true) return undefined
  return (JSON.parse(error) as SealedFields).sealed
}

const ENCRYPTED = 'EncryptedError'

function placeholder(sealed: string): ErrorRecord {
  return { name: ENCRYPTED, message: encryptedWith(sealed) }
}

function encryptedWith(sealed: string): string {
  return `encrypted with key ${JSON.stringify(keyOf(sealed))}`
}

type SealedEntry = AttemptEntry & SealedFields

/** Seals what handlers threw and logged; the times and the way each attempt ended stay readable. */
export function sealLog(keys: Keyring, log: string | null, owner: Owner): string | null {
  if (log === null) return null
  return JSON.stringify(readLog(log).map((entry) => sealEntry(keys, entry, owner)))
}

function sealEntry(keys: Keyring, entry: SealedEntry, owner: Owner): SealedEntry {
  const { error, log, ...rest } = entry
  if (entry.sealed !== undefined || (error === undefined && log === undefined)) return entry
  if (log === undefined && isReadableError(error)) return entry
  const sealed = keys.seal(JSON.stringify({ error, log }), owner, 'log')
  return { ...rest, ...(error === undefined ? {} : { error: placeholder(sealed) }), sealed }
}

export function openLog(keys: Keyring, log: string | null, owner: Owner): string | null {
  if (log === null || !log.includes('"sealed"')) return log
  return JSON.stringify(readLog(log).map((entry) => openEntry(keys, entry, owner)))
}

function openEntry(keys: Keyring, { sealed, ...shown }: SealedEntry, owner: Owner): AttemptEntry {
  if (sealed === undefined) return shown
  const opened = openValue(keys, sealed, owner, 'log')
  if (isSealed(opened)) return { ...shown, log: [encryptedWith(opened)] }
  return { ...shown, error: undefined, ...(JSON.parse(opened) as Pick<AttemptEntry, 'error' | 'log'>) }
}

/** What a handler logged of a step, and why its result is not kept. The other fields are the store's. */
export function sealNote(keys: Keyring, note: string | null, owner: Owner, address: string): string | null {
  if (note === null) return null
  const { log, why, ...rest } = JSON.parse(note) as StepNote & SealedFields
  if (log === undefined && why === undefined) return note
  return JSON.stringify({ ...rest, sealed: keys.seal(JSON.stringify({ log, why }), owner, `note ${address}`) })
}

export function openNote(keys: Keyring, note: string | null, owner: Owner, address: string): string | null {
  if (note === null || !note.includes('"sealed"')) return note
  const { sealed, ...rest } = JSON.parse(note) as StepNote & SealedFields
  if (sealed === undefined) return note
  const opened = openValue(keys, sealed, owner, `note ${address}`)
  const shown = isSealed(opened) ? { why: encryptedWith(opened) } : (JSON.parse(opened) as StepNote)
  return JSON.stringify({ ...rest, ...shown })
}

export function sealProgress(keys: Keyring, progress: string | null, owner: Owner): string | null {
  return progress === null ? null : JSON.stringify({ sealed: keys.seal(progress, owner, 'progress') })
}

/** Null where it cannot be opened: progress is numbers, and has no text to say why. */
export function openProgress(keys: Keyring, progress: string | null, owner: Owner): string | null {
  if (progress === null || !progress.startsWith('{"sealed":')) return progress
  const { sealed } = JSON.parse(progress) as { readonly sealed: string }
  const opened = openValue(keys, sealed, owner, 'progress')
  return isSealed(opened) ? null : opened
}

/** Of the options, `meta` is secret: the title, labels and captured context stay readable. */
export function sealOptions(keys: Keyring, text: string | null, owner: Owner, binding: Binding = 'job'): string | null {
  if (text === null || !text.includes('"meta"')) return text
  const options = readOptions(text)
  if (options.meta === undefined) return text
  const sealed = sealValue(keys, fromStoredValue(options.meta), owner, 'meta', binding)
  return writeOptions({ ...options, meta: { text: sealed } })
}

export function openOptions(keys: Keyring, text: string | null, owner: Owner): string | null {
  if (text === null || !text.includes('"meta"')) return text
  const options = readOptions(text)
  if (options.meta === undefined) return text
  const stored = fromStoredValue(options.meta)
  const opened = openValue(keys, stored, owner, 'meta')
  if (opened === stored) return text
  const meta = typeof opened === 'string' ? { text: opened } : { base64: Buffer.from(opened).toString('base64') }
  return writeOptions({ ...options, meta })
}

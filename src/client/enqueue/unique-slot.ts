import { canonicalText } from '../../codec/codec.js'
import { joinPath, problemOf } from '../../codec/path.js'
import { reason } from '../../codec/show.js'
import { CodecError } from '../../errors.js'
import type { Problem } from '../../errors.js'
import { parseDuration } from '../../job/duration/duration.js'
import type { EnqueueOptions } from '../../job/enqueue.js'
import type { Registered } from '../../job/definition/registry.js'
import { isThenable, ignoreRejection } from '../../job/definition/schema.js'
import { ownField } from '../../job/definition/title.js'
import { KEY_TEXT_MAX } from '../../job/rules/unique.js'
import type { UniqueSlotRequest } from '../../job/rules/unique.js'
import { mergeUnique } from '../../job/definition/unique-options.js'
import type { UniqueOptions } from '../../job/definition/unique-options.js'
import { digest } from '../../world/digest.js'

/** The unique slot of an item, undefined when the job is not unique, or the reason why the slot cannot be computed. */
export type SlotResult =
  | { readonly ok: true; readonly slot: UniqueSlotRequest | undefined }
  | { readonly ok: false; readonly problem: Problem; readonly cause: unknown }

/** `root` is what errors call the payload: `payload`, `payloads[3]`. */
export function uniqueSlotOf(
  registered: Registered,
  options: EnqueueOptions,
  payload: unknown,
  root: string,
): SlotResult {
  const unique = options.unique === undefined ? registered.unique : mergeUnique([options.unique, registered.unique])
  if (unique === undefined) return NOT_UNIQUE
  const text = valueText(registered, unique.by, payload, root)
  if (!text.ok) return text
  const onDuplicate = unique.onDuplicate ?? 'ignore'
  return {
    ok: true,
    slot: {
      key: slotText(registered, text.text),
      onDuplicate,
      // 'reschedule' applies to a waiting job only. Once a worker has claimed it, a later enqueue must run too: the running
      // attempt may have read its data before the latest change.
      while: unique.while ?? (onDuplicate === 'reschedule' ? 'waiting' : 'unfinished'),
      forMs: windowMs(unique.for),
    },
  }
}

/** No canonical text begins like a digest: it is no JSON, and a field's name is followed by a colon. */
function slotText({ job, keyring }: Registered, text: string): string {
  if (keyring !== undefined) return keyring.uniqueText(job.name, text)
  return text.length <= KEY_TEXT_MAX ? text : `sha256 ${digest(text)}`
}

const NOT_UNIQUE: SlotResult = { ok: true, slot: undefined }

type TextResult = { readonly ok: true; readonly text: string } | Extract<SlotResult, { ok: false }>

function valueText(registered: Registered, by: UniqueOptions['by'], payload: unknown, root: string): TextResult {
  if (by === undefined) return canonicalTextOf(registered, payload, root)
  if (typeof by === 'function') return textFromFunction(registered, by as (payload: unknown) => unknown, payload, root)
  const texts: string[] = []
  for (const field of [...new Set(typeof by === 'string' ? [by] : by)].sort()) {
    const value = field.split('.').reduce<unknown>(ownField, payload)
    const path = joinPath(root, field)
    if (value === undefined) return wrong(path, 'is missing, and the job is unique by it')
    const text = canonicalTextOf(registered, value, path)
    if (!text.ok) return text
    // The name is part of the text: user 7 and tenant 7 are different values.
    texts.push(`${field}:${text.text}`)
  }
  return { ok: true, text: texts.join(',') }
}

function textFromFunction(
  registered: Registered,
  by: (payload: unknown) => unknown,
  payload: unknown,
  root: string,
): TextResult {
  let value: unknown
  try {
    value = by(payload)
  } catch (error) {
    return wrong(root, `has no unique value: unique.by threw ${reason(error)}`, error)
  }
  if (isThenable(value)) {
    ignoreRejection(value)
    return wrong(root, 'has no unique value: unique.by must be synchronous, and it returned a promise')
  }
  if (value === undefined) return wrong(root, 'has no unique value: unique.by returned undefined for it')
  const text = canonicalTextOf(registered, value, '')
  return text.ok ? text : wrong(root, `has no unique value: what unique.by returned ${text.problem.message}`)
}

function canonicalTextOf(registered: Registered, value: unknown, root: string): TextResult {
  try {
    return { ok: true, text: canonicalText(registered.codec, value) }
  } catch (error) {
    const problem =
      error instanceof CodecError
        ? problemOf(error, root)
        : { path: root, message: `could not be written: ${reason(error)}` }
    return { ok: false, problem, cause: error }
  }
}

function wrong(path: string, message: string, cause?: unknown): TextResult {
  return { ok: false, problem: { path, message }, cause }
}

function windowMs(value: UniqueOptions['for']): number | null {
  if (value === undefined) return null
  if (value === Infinity) return Infinity
  const parsed = parseDuration(value)
  return parsed.ok ? parsed.ms : null
}

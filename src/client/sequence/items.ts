import { show } from '../../codec/show.js'
import { InvalidOptionsError, InvalidPayloadError, PayloadTooLargeError } from '../../errors.js'
import type { Problem } from '../../errors.js'
import type { Encoded } from '../../job/rules/outcome.js'
import type { Registered } from '../../job/definition/registry.js'
import { checkPayload } from '../../job/definition/schema.js'
import type { Checked } from '../../job/definition/schema.js'
import { reason } from '../../codec/show.js'
import { encodePayload, PAYLOAD_MAX_BYTES } from '../enqueue/prepare.js'

/** The most items of one sequence. */
export const ITEMS_MAX = 1_000_000

/** The items of a call, copied: the caller may change its array while they are checked. */
export function copyItems(items: unknown): readonly unknown[] {
  if (!Array.isArray(items)) throw badItems(`must be an array, got ${show(items)}`)
  if (items.length > ITEMS_MAX) throw badItems(`must be at most ${ITEMS_MAX}, got ${items.length}`)
  return [...(items as readonly unknown[])]
}

function badItems(message: string): InvalidOptionsError {
  return new InvalidOptionsError('sequence()', [{ path: 'items', message }])
}

/** Encodes all items before any check is awaited; the first that cannot be stored refuses all of them. */
export function encodeItems(registered: Registered, items: readonly unknown[]): Encoded[] {
  return items.map((item, index) => {
    try {
      return encodePayload(registered, item, index)
    } catch (error) {
      throw namedAsItem(registered, error, index)
    }
  })
}

/** An error of a bulk names `payloads[3]`; that of a sequence names `items[3]`. */
function namedAsItem(registered: Registered, error: unknown, index: number): unknown {
  const subject = subjectOf(registered)
  if (error instanceof PayloadTooLargeError)
    return new PayloadTooLargeError(`${subject}: items[${index}]`, error.bytes, PAYLOAD_MAX_BYTES)
  if (!(error instanceof InvalidPayloadError)) return error
  return new InvalidPayloadError(subject, renamed(error.problems, index), { cause: error.cause })
}

/** Checks one item after the other by the job's schema; a promise from the first asynchronous check on. */
export function checkItems(registered: Registered, items: readonly unknown[], from = 0): void | Promise<void> {
  for (let index = from; index < items.length; index += 1) {
    const checked = checkItem(registered, items[index])
    if (checked instanceof Promise)
      return checked.then((settled) => {
        refuseWrong(registered, settled, index)
        return checkItems(registered, items, index + 1)
      })
    refuseWrong(registered, checked, index)
  }
}

function checkItem(registered: Registered, item: unknown): Checked | Promise<Checked> {
  const failed = (error: unknown): Checked => ({
    ok: false,
    problems: [{ path: 'payload', message: `could not be checked: the job’s check threw ${show(reason(error))}` }],
  })
  try {
    const checked = checkPayload(registered.job.options, item)
    return checked instanceof Promise ? checked.catch(failed) : checked
  } catch (error) {
    return failed(error)
  }
}

function refuseWrong(registered: Registered, checked: Checked, index: number): void {
  if (!checked.ok) throw new InvalidPayloadError(subjectOf(registered), renamed(checked.problems, index))
}

function renamed(problems: readonly Problem[], index: number): Problem[] {
  return problems.map(({ path, message }) => ({
    path: path.replace(/^payloads\[\d+\]|^payload/, `items[${index}]`),
    message,
  }))
}

function subjectOf({ job }: Registered): string {
  return `job ${JSON.stringify(job.name)}`
}

import { didYouMean } from '../../codec/near-name.js'
import { isOptionsObject } from '../../codec/options-object.js'
import { show } from '../../codec/show.js'
import {
  InboxFullError,
  InvalidOptionsError,
  InvalidPayloadError,
  JobGoneError,
  NotAWorkflowError,
  UnknownEventError,
} from '../../errors.js'
import type { Problem } from '../../errors.js'
import { commandProblems, toGiven } from '../../job/command-options.js'
import type { AuditNote, CommandOptions } from '../../job/command-options.js'
import { EVENT } from '../../job/definition/brands.js'
import { isKey } from '../../job/definition/check-options.js'
import type { Registry } from '../../job/definition/registry.js'
import { checkPayload } from '../../job/definition/schema.js'
import type { Checked } from '../../job/definition/schema.js'
import type { AnyEvent } from '../../job/definition/workflow-options.js'
import type { Codec } from '../../codec/codec.js'
import type { Enqueueable } from '../../job/enqueue.js'
import type { Encoded } from '../../job/rules/outcome.js'
import type { Store } from '../../store/store.js'
import { thenOrRetry } from '../../store/unknown-outcome.js'
import { INBOX_MAX } from '../../store/workflows.js'
import type { NewEvent, Sent } from '../../store/workflows.js'
import { checkId } from '../check-arguments.js'
import { requireSyncCheck, thenSync } from '../enqueue/in-transaction.js'
import { encodeBounded } from '../enqueue/prepare.js'

/** The options of one event. With an actor, the event has a row of the audit trail in its transaction. */
export interface SendOptions extends CommandOptions {
  /** A second event of this id to the same workflow is not written: 1 to 200 characters. */
  readonly id?: string | undefined
  /** The handle of your own open transaction: the event is sent if and only if that commits. */
  readonly tx?: unknown
}

/** The payload may be omitted when the event has none. */
export type SendArguments<Sent> = undefined extends Sent
  ? [payload?: Sent, options?: SendOptions]
  : [payload: Sent, options?: SendOptions]

/** Where an event goes: the id or the handle of a workflow, or its job and the key that it holds. */
export type SendTarget = string | { readonly id: string } | readonly [job: Enqueueable, key: string]

export interface SendParts {
  readonly store: Store
  readonly registry: Registry
  readonly codec: Codec
  /** How long a row of the audit trail is kept. */
  readonly auditKeepMs: number
}

/** Checks, encodes and sends. With `tx` everything is done in the call, synchronously where the handle is. */
export function sendEvent(
  parts: SendParts,
  to: SendTarget,
  given: unknown,
  payload: unknown,
  options: SendOptions | undefined,
): Promise<boolean> {
  if (txIn(options) === undefined) return sendLater(parts, to, given, payload, options)
  const { event, target, eventId, audit } = readArguments(parts, to, given, options)
  const encode = (name: string): Encoded => {
    refuseUndeclared(parts.registry, name, event)
    return encodeEvent(parts, name, event, payload)
  }
  // By id, only the store knows the name of the job.
  const encoded = 'name' in target ? encode(target.name) : encode
  refuseWrong(
    event,
    requireSyncCheck(`event ${JSON.stringify(event.name)}`, checkPayload({ input: event.schema }, payload)),
  )
  const sent = parts.store.transactions.sendEventIn(txIn(options), {
    to: target,
    name: event.name,
    eventId,
    payload: encoded,
    audit,
  })
  return thenSync(sent, answerOf)
}

function txIn(options: SendOptions | undefined): unknown {
  return isOptionsObject(options) ? options.tx : undefined
}

async function sendLater(
  parts: SendParts,
  to: SendTarget,
  given: unknown,
  payload: unknown,
  options: SendOptions | undefined,
): Promise<boolean> {
  const { event, target, eventId, audit } = readArguments(parts, to, given, options)
  // Encoded with the codec of its job, whose name only the store knows.
  const name = 'name' in target ? target.name : (await parts.store.jobs.readJobs([target.id]))[0]?.name
  refuseUndeclared(parts.registry, name, event)
  const encoded = encodeEvent(parts, name, event, payload)
  refuseWrong(event, await checkPayload({ input: event.schema }, payload))
  const written = parts.store.workflows.sendEvent({ to: target, name: event.name, eventId, payload: encoded, audit })
  return thenOrRetry(written, (sent) => answerOf(sent, 'id' in target ? target.id : undefined))
}

interface ReadArguments {
  readonly event: AnyEvent
  readonly target: NewEvent['to']
  readonly eventId: string | null
  readonly audit: AuditNote | undefined
}

function readArguments(
  parts: SendParts,
  to: SendTarget,
  given: unknown,
  options: SendOptions | undefined,
): ReadArguments {
  const problems: readonly Problem[] = commandProblems(options, SEND_SHAPE)
  if (problems.length > 0) throw new InvalidOptionsError('send()', problems)
  return {
    target: targetOf(parts.registry, to),
    event: eventOf(parts.registry, given),
    eventId: options?.id ?? null,
    audit: toGiven('send', options, parts.auditKeepMs).audit,
  }
}

const SEND_SHAPE = { takesTx: true, more: { id: isKey, tx: () => undefined } } as const

function targetOf(registry: Registry, to: SendTarget): NewEvent['to'] {
  if (typeof to === 'string') return { id: checkId(to) }
  if (!Array.isArray(to)) {
    const id: unknown = typeof to === 'object' && to !== null ? (to as { id?: unknown }).id : undefined
    if (typeof id === 'string') return { id: checkId(id) }
    throw bad('to', `must be a job's id, a handle or [job, key], got ${show(to)}`)
  }
  const [job, key] = to as unknown as readonly [Enqueueable, unknown]
  const wrong = isKey(key)
  if (to.length !== 2 || wrong !== undefined) throw bad('to', `must be [job, key], got ${show(to)}`)
  return { name: registry.lookUp(job).job.name, key: key as string }
}

/** An event by its value, or by the name under which a registered workflow declares it. */
function eventOf(registry: Registry, given: unknown): AnyEvent {
  if (typeof given === 'object' && given !== null && EVENT in given) {
    const event = given as unknown as AnyEvent
    // A registered workflow reads it through the schema that it declares.
    const declared = registry.event(event.name)
    return event.schema === undefined && declared !== undefined ? declared : event
  }
  if (typeof given !== 'string')
    throw bad('event', `must be made by event(), or be the name of one, got ${show(given)}`)
  const known = registry.event(given)
  if (known !== undefined) return known
  throw new UnknownEventError(given, didYouMean(given, registry.eventNames()))
}

/** A workflow that lists its events takes no other. */
function refuseUndeclared(registry: Registry, name: string | undefined, event: AnyEvent): void {
  const events = name === undefined ? undefined : registry.known(name)?.workflow?.events
  if (events === undefined || events.some((one) => one.name === event.name)) return
  const names = events.map((one) => one.name)
  const declared = `; workflow ${JSON.stringify(name)} declares ${names.map((one) => JSON.stringify(one)).join(', ') || 'none'}`
  throw new UnknownEventError(event.name, didYouMean(event.name, names) || declared)
}

function encodeEvent(
  { registry, codec }: SendParts,
  name: string | undefined,
  event: AnyEvent,
  payload: unknown,
): Encoded {
  const of = name === undefined ? codec : registry.codecOf(name)
  return encodeBounded(of, `event ${JSON.stringify(event.name)}`, payload)
}

function refuseWrong(event: AnyEvent, checked: Checked): void {
  if (!checked.ok) throw new InvalidPayloadError(`event ${JSON.stringify(event.name)}`, checked.problems)
}

function answerOf({ did, id, jobName }: Sent, asked?: string): boolean {
  switch (did) {
    case 'sent':
      return true
    case 'known':
    case 'ended':
      return false
    case 'gone':
      throw new JobGoneError(id ?? asked ?? 'of that key')
    case 'plain':
      throw new NotAWorkflowError(id ?? '', jobName ?? '')
    case 'full':
      throw new InboxFullError(id ?? '', jobName ?? '', INBOX_MAX)
    default:
      return did satisfies never
  }
}

function bad(path: string, message: string): InvalidOptionsError {
  return new InvalidOptionsError('send()', [{ path, message }])
}

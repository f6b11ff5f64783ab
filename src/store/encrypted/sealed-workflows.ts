import type { Encoded } from '../../job/rules/outcome.js'
import { isSealed } from '../../job/secrets/keyring.js'
import type { Keyring, Owner } from '../../job/secrets/keyring.js'
import type {
  CallFailure,
  Inbox,
  InboxRow,
  LogAppend,
  NewEvent,
  OwnedClaim,
  StepRow,
  WorkflowEnd,
  WorkflowLog,
} from '../workflows.js'
import { sealNew } from './sealed-names.js'
import type { Sealing } from './sealed-names.js'
import { errorPart, sealStep, valuePart } from './sealed-rows.js'
import { openError, openNote, openText, openValue, sealedError, sealValue } from './sealed-values.js'

/** Seals and opens the log and the inbox of workflows. Names, addresses and event ids stay readable: stores search by them. */

/** Without its owner a value could only be written as plain text, or not be opened. */
export function ownerOfClaim({ id, name, key }: OwnedClaim): Owner {
  if (id === undefined || name === undefined)
    throw new Error('the log of a workflow is written and read with the id and the name of its job')
  return { id, name, key }
}

export function sealAppend(
  { keys, seals }: Sealing,
  { rows, children }: Pick<LogAppend, 'rows' | 'children'>,
  owner: Owner,
): Pick<LogAppend, 'rows' | 'children'> {
  return {
    rows: seals.has(owner.name) ? rows.map((row) => sealStep(keys, row, owner)) : rows,
    children: children.map((child) => {
      const [job = child.job] = sealNew({ keys, seals }, [child.job], child.options.onDuplicate)
      return { ...child, job }
    }),
  }
}

/** The input of a restart becomes the payload of the same job. */
export function sealWorkflowEnd(
  { keys, seals }: Sealing,
  end: WorkflowEnd,
  owner: Owner,
): Pick<WorkflowEnd, 'rows' | 'children' | 'restarted'> {
  const { restarted } = end
  const isSealed = restarted !== undefined && seals.has(owner.name)
  return {
    ...sealAppend({ keys, seals }, end, owner),
    ...(isSealed ? { restarted: { ...restarted, input: sealValue(keys, restarted.input, owner, 'payload') } } : {}),
  }
}

/**
 * An event is bound to the workflow that it is sent to, or to its name and key. The name behind an id is not known here, and
 * reading it would be one more call: an event by id is always sealed.
 */
export function sealEvent({ keys, seals }: Sealing, event: NewEvent): NewEvent {
  const { to, payload } = event
  if ('id' in to) {
    const owner = { id: to.id, name: '' }
    const seal = (encoded: Encoded): Encoded => sealValue(keys, encoded, owner, eventPart(event.name))
    return { ...event, payload: typeof payload === 'function' ? (name) => seal(payload(name)) : seal(payload) }
  }
  if (!seals.has(to.name) || typeof payload === 'function') return event
  const owner = { id: '', name: to.name, key: to.key }
  return { ...event, payload: sealValue(keys, payload, owner, eventPart(event.name), 'key') }
}

const eventPart = (name: string): string => `event ${name}`

export function openStep<Row extends StepRow>(keys: Keyring, row: Row, owner: Owner): Row {
  const { address, value, error, note } = row
  return {
    ...row,
    value: openValue(keys, value, owner, valuePart(address)),
    error: openError(keys, error, owner, errorPart(address)),
    note: openNote(keys, note, owner, address),
  }
}

export function openLogs(
  keys: Keyring,
  claims: readonly OwnedClaim[],
  logs: readonly WorkflowLog[],
): readonly WorkflowLog[] {
  const owners = ownersOf(claims)
  return logs.map((log) => {
    const owner = owners.get(log.ref) as Owner
    return { ...openInbox(keys, log, owner), rows: log.rows?.map((row) => openLogRow(keys, row, owner)) }
  })
}

/**
 * A row of a log that is replayed. An error that cannot be opened must not be replayed as another error: it is given as a value
 * instead, which the codec refuses, and the workflow is parked.
 */
function openLogRow(keys: Keyring, row: StepRow, owner: Owner): StepRow {
  const opened = openStep(keys, row, owner)
  const sealed = sealedError(row.error)
  if (sealed === undefined || !isSealed(openValue(keys, sealed, owner, errorPart(row.address)))) return opened
  return { ...opened, value: sealed, error: null }
}

export function openInboxes(keys: Keyring, claims: readonly OwnedClaim[], inboxes: readonly Inbox[]): readonly Inbox[] {
  const owners = ownersOf(claims)
  return inboxes.map((inbox) => openInbox(keys, inbox, owners.get(inbox.ref) as Owner))
}

function ownersOf(claims: readonly OwnedClaim[]): ReadonlyMap<number, Owner> {
  return new Map(claims.map((claim) => [claim.ref, ownerOfClaim(claim)]))
}

function openInbox<In extends Inbox>(keys: Keyring, inbox: In, owner: Owner): In {
  return { ...inbox, inbox: inbox.inbox.map((row) => openInboxRow(keys, row, owner)) }
}

/** The end of a called job was copied from its row: it is bound to that job. */
export function openInboxRow(keys: Keyring, row: InboxRow, owner: Owner): InboxRow {
  const { kind, name, payload, error } = row
  if (kind === 'event') return { ...row, payload: openValue(keys, payload, owner, eventPart(name ?? '')) }
  if (kind !== 'call' || name === null) return row
  const called = { id: name, name: '' }
  return {
    ...row,
    payload: openValue(keys, payload, called, 'result'),
    error: error === null ? null : openFailure(keys, error, called),
  }
}

function openFailure(keys: Keyring, text: string, called: Owner): string {
  const failure = JSON.parse(text) as CallFailure
  if (failure.error === undefined) return text
  const isRecord = failure.kind === 'failed'
  const error = isRecord ? openError(keys, failure.error, called) : openText(keys, failure.error, called, 'reason')
  return JSON.stringify({ ...failure, error })
}

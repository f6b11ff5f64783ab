import { inWords } from '../../../job/why/words.js'
import { numberOf } from '../../rows/columns.js'
import type { Numeric } from '../../rows/columns.js'
import type { StoreFinding } from '../../info.js'
import type { Session } from '../connection/session.js'

/** A transaction that is open for longer is reported. */
const TRANSACTION_MS = 300_000
/** A replication slot without a receiver is reported from this much WAL on. */
const SLOT_BYTES = 1024 * 1024 * 1024

/** What keeps the server from cleaning up, and who. */
export async function inspectServer(session: Session): Promise<StoreFinding[]> {
  const { oldestTransaction, idleSlot } = session.queries
  const [open] = await session.query<OpenTransaction>(oldestTransaction, String(TRANSACTION_MS))
  const [slot] = await session.query<{ slot: string; bytes: Numeric }>(idleSlot, String(SLOT_BYTES))
  const now = await session.now()
  return [...(open === undefined ? [] : [pinned(open, now)]), ...(slot === undefined ? [] : [idle(slot)])]
}

interface OpenTransaction {
  readonly pid: number
  readonly application: string
  readonly role: string | null
  readonly state: string
  readonly since: Numeric
}

function pinned({ pid, application, role, state, since }: OpenTransaction, now: number): StoreFinding {
  const at = numberOf(since)
  const of = role === null ? '' : ` of role ${role}`
  return {
    kind: 'horizon',
    text: `A transaction of ${JSON.stringify(application)} (pid ${pid}${of}, ${state}) has been open for ${inWords(now - at)}.`,
    since: new Date(at),
    effect: 'The server cannot remove rows that were deleted since, so tables grow and claims become slower.',
    mend: `End it there, or with \`select pg_terminate_backend(${pid})\`; set idle_in_transaction_session_timeout.`,
  }
}

function idle({ slot, bytes }: { readonly slot: string; readonly bytes: Numeric }): StoreFinding {
  return {
    kind: 'wal',
    text: `The replication slot ${JSON.stringify(slot)} has no receiver and keeps ${Math.round(numberOf(bytes) / 1024 / 1024)} MB of WAL.`,
    since: undefined,
    effect: 'The disk of the server fills up.',
    mend: `Start its receiver, or drop it: \`select pg_drop_replication_slot('${slot.replaceAll("'", "''")}')\`.`,
  }
}

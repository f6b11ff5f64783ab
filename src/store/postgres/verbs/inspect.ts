import { inWords } from '../../../job/why/words.js'
import { numberOf } from '../../rows/columns.js'
import type { Numeric } from '../../rows/columns.js'
import type { StoreFinding } from '../../info.js'
import { schemaFindings } from '../../migrations.js'
import { SCHEMA_VERSION } from '../migrations/migrate.js'
import type { World } from '../../../world/world.js'
import type { Session } from '../connection/session.js'

/** A transaction that is open for longer is reported. */
const TRANSACTION_MS = 300_000
/** A replication slot without a receiver is reported from this much WAL on. */
const SLOT_BYTES = 1024 * 1024 * 1024

/** What keeps the server from cleaning up, and who. */
export async function inspectServer(session: Session): Promise<StoreFinding[]> {
  const { oldestTransaction, idleSlot, harmfulSettings } = session.queries
  const [open] = await session.query<OpenTransaction>(oldestTransaction, String(TRANSACTION_MS))
  const [slot] = await session.query<{ slot: string; bytes: Numeric }>(idleSlot, String(SLOT_BYTES))
  const [settings] = await session.query<Settings>(harmfulSettings)
  const [schema] = await session.query<{ version: Numeric }>(session.queries.schemaVersion)
  const now = await session.now()
  return [
    ...schemaFindings(schema === undefined ? 0 : numberOf(schema.version), SCHEMA_VERSION),
    ...(open === undefined ? [] : [pinned(open, now)]),
    ...(slot === undefined ? [] : [idle(slot)]),
    ...harmful(settings),
  ]
}

interface Settings {
  readonly autovacuum: string
  readonly jit: string
}

function harmful(settings: Settings | undefined): StoreFinding[] {
  const found: StoreFinding[] = []
  if (settings?.autovacuum === 'off')
    found.push({
      kind: 'setting',
      text: 'autovacuum is off.',
      since: undefined,
      effect: 'Deleted rows are never removed: tables grow, and claims become slower and slower.',
      mend: 'Set autovacuum = on in the configuration of the server, and reload it.',
    })
  if (settings?.jit === 'on')
    found.push({
      kind: 'setting',
      text: 'jit is on in a session of this process, which had set it to off: a pooler has dropped its settings.',
      since: undefined,
      effect: 'A statement that the server takes for costly is compiled first, which takes longer than the statement.',
      mend: 'Set it for the role: alter role … set jit = off.',
    })
  return found
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

/** Whether notifications reach this process, and since when they do not. */
export class ListenerCheck {
  readonly #opened: { readonly world: World; isHeard(): Promise<boolean> }
  #deafSince: number | undefined

  constructor(opened: { readonly world: World; isHeard(): Promise<boolean> }) {
    this.#opened = opened
  }

  async check(): Promise<StoreFinding[]> {
    if (await this.#opened.isHeard()) this.#deafSince = undefined
    else this.#deafSince ??= this.#opened.world.clock.now()
    if (this.#deafSince === undefined) return []
    const found: StoreFinding = {
      kind: 'push',
      text: 'A notification that this process sent to itself did not arrive.',
      since: new Date(this.#deafSince),
      effect: 'Jobs that other processes enqueue, cancels and results are found at the next poll instead of at once.',
      mend: 'Look for a pooler or a firewall between this process and the server; give the direct address: postgres(url, { listen }).',
    }
    return [found]
  }
}

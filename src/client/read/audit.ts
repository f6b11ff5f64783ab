import { isName } from '../../job/definition/check-options.js'
import { textProblem } from '../../job/definition/check-text.js'
import { parseInstant } from '../../job/duration/duration.js'
import type { InstantLike, InstantText } from '../../job/duration/duration-instant.js'
import type { Store } from '../../store/store.js'
import { isInstant } from '../check-arguments.js'
import { checkPage, isNumberCursor, PAGE_LIMIT } from './page.js'
import type { Page, PageOptions } from './page.js'

/** Which rows of the audit trail to read. */
export interface AuditOptions extends PageOptions {
  readonly actor?: string | undefined
  /** The verb that was called: 'retry', 'cancelAll', 'pauseUntil'. */
  readonly verb?: string | undefined
  /** 'job 0198…', 'queue mail', 'group spring', 'schedule digest'. */
  readonly target?: string | undefined
  /** Written at this instant or later. */
  readonly since?: Date | InstantLike | InstantText | undefined
}

/** A command that was given with an `actor`. */
export interface AuditRecord {
  readonly at: Date
  readonly actor: string
  readonly role: string | undefined
  readonly verb: string
  readonly target: string
  /** The number of jobs that it changed. */
  readonly count: number
  /** The state before and after, as text; undefined where the command has none. */
  readonly before: string | undefined
  readonly after: string | undefined
  readonly reason: string | undefined
}

const TARGET_MAX = 1_000

/** One page of the audit trail, newest first. */
export async function readAudit(store: Store, options: AuditOptions = {}): Promise<Page<AuditRecord>> {
  checkPage('audit()', options, isNumberCursor, {
    actor: isName,
    verb: isName,
    target: (value) => textProblem(value, TARGET_MAX, 'text'),
    since: isInstant,
  })
  const { actor, verb, target, limit = PAGE_LIMIT, cursor } = options
  const since = parseInstant(options.since)
  const page = await store.observing.readAudit({
    actor,
    verb,
    target,
    since: since.ok ? since.atMs : undefined,
    limit,
    cursor: cursor === undefined ? null : Number(cursor),
  })
  const rows = page.rows.map(({ at, role, before, after, reason, actor: by, verb: called, target: of, count }) => ({
    at: new Date(at),
    actor: by,
    role: role ?? undefined,
    verb: called,
    target: of,
    count,
    before: before ?? undefined,
    after: after ?? undefined,
    reason: reason ?? undefined,
  }))
  return { rows, cursor: page.cursor === null ? undefined : String(page.cursor) }
}

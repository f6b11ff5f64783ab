import type { AuditNote } from '../../job/command-options.js'

/** A row of the audit trail that is to be written. */
export interface AuditEntry extends AuditNote {
  /** 'job 0198…', 'queue mail', 'group spring', 'schedule digest'. */
  readonly target: string
  /** The number of jobs that the command changed. */
  readonly count: number
  /** The state before and after the command, as text. */
  readonly before: string | null
  readonly after: string | null
}

export interface AuditQuery {
  readonly actor?: string | undefined
  readonly verb?: string | undefined
  readonly target?: string | undefined
  /** Rows written at this instant or later. */
  readonly since?: number | undefined
  readonly limit: number
  /** The number of the last row of the page before; null for the first page. */
  readonly cursor: number | null
}

export interface AuditRow extends Omit<AuditEntry, 'keepMs'> {
  readonly number: number
  readonly at: number
}

export interface AuditPage {
  readonly rows: readonly AuditRow[]
  readonly cursor: number | null
}

/** Rows whose time is over that each audited command deletes: more than it writes, so that the table stays bounded. */
export const AUDIT_TRIM = 20

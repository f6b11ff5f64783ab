import type { AuditEntry, AuditPage, AuditQuery } from './audit.js'

/** The observing role: what people read of the whole store, one bounded page at a time. */
export interface ObservingStore {
  /** The audit trail, newest first. */
  readAudit(query: AuditQuery): Promise<AuditPage>
  /** Writes the row of a command that consists of many transactions. */
  addAudit(entry: AuditEntry): Promise<null>
}

import type { AuditEntry, AuditPage, AuditQuery } from './audit.js'
import type { ListPage, ListQuery, WorkerListed } from './lists.js'

/** The observing role: what people read of the whole store, one bounded page at a time. */
export interface ObservingStore<Group, Sequence> {
  /** The audit trail, newest first. */
  readAudit(query: AuditQuery): Promise<AuditPage>
  /** Writes the row of a command that consists of many transactions. */
  addAudit(entry: AuditEntry): Promise<null>
  /** Workers in the order of their ids. */
  listWorkers(query: ListQuery): Promise<ListPage<WorkerListed>>
  /** Groups in the order of their names. */
  listGroups(query: ListQuery): Promise<ListPage<Group>>
  /** Sequences, the newest first, before this ref. */
  listSequences(query: { readonly limit: number; readonly before: number | null }): Promise<ListPage<Sequence>>
}

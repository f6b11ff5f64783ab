import type { State } from '../../job/rules/states.js'

/**
 * The change log: every change of state of every job, by any process, while it is switched on. Triggers of the database
 * write it, so that no verb has to, and so that it costs nothing while it is off (docs/decisions/change-log.md).
 */
export interface ChangeLogStore {
  /** Switches the log on or off, for all processes on this store. */
  switchLog(isOn: boolean): Promise<void>
  /**
   * Registers a reader. A new consumer begins with the changes after this call; a known one continues. A reader that has
   * the same consumer already loses it.
   */
  openReader(consumer: string, reader: string): Promise<null>
  /** Records what was read, and reads on. Null: another reader has the consumer, or it was forgotten. */
  readChanges(request: ReadChanges): Promise<ChangePage | null>
  /** Records that all changes up to this number were read. */
  saveRead(consumer: string, reader: string, read: number): Promise<boolean>
  /** Forgets a consumer; false when there is none. */
  dropConsumer(consumer: string): Promise<boolean>
  /** Deletes up to `limit` changes that every consumer has read, and returns how many. */
  trimChanges(limit: number): Promise<number>
}

export interface ReadChanges {
  readonly consumer: string
  readonly reader: string
  /** Undefined: from where the consumer stopped. */
  readonly after: number | undefined
  readonly limit: number
  /** Of the page before. */
  readonly bound: ChangeBound | undefined
}

/**
 * The number up to which changes may be read. Transactions commit in another order than they take numbers: numbers up to
 * this one are final when none of these writers is open any more. SQLite has one writer at a time, and so none of them.
 */
export interface ChangeBound {
  readonly number: number
  readonly writers: readonly string[]
}

export interface ChangePage {
  readonly rows: readonly ChangeRow[]
  /** Where the next read begins. */
  readonly after: number
  /** Undefined: everything up to the last bound was read. */
  readonly bound: ChangeBound | undefined
}

export interface ChangeRow {
  readonly number: number
  readonly id: string
  readonly job: string
  readonly queue: string
  readonly state: State
  readonly at: number
}

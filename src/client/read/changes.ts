import { InvalidOptionsError, LeaseLostError } from '../../errors.js'
import { show } from '../../codec/show.js'
import { checkFields } from '../../job/definition/check-fields.js'
import { checkName } from '../../job/definition/check-options.js'
import { isBoolean } from '../../job/definition/check-values.js'
import type { State } from '../../job/rules/states.js'
import type { ChangeBound, ChangePage, ChangeRow, ReadChanges } from '../../store/observing/change-log.js'
import type { Store } from '../../store/store.js'
import { settledWithin } from '../../world/timers.js'
import type { World } from '../../world/world.js'

/** A change of the state of a job, in any process, as `mill.changes()` gives it. */
export interface Change {
  readonly kind: 'change'
  /** Grows with every change of a job; numbers may be left out. */
  readonly number: number
  /** By the clock of the database. */
  readonly at: Date
  readonly id: string
  readonly job: string
  readonly queue: string
  readonly state: State
}

/** The last value, with `end`. */
export interface ChangesEnd {
  readonly kind: 'end'
}

export interface ChangesOptions {
  /** With true, the last value after `stopChanges()` or `close()` is `{ kind: 'end' }`. */
  readonly end?: boolean | undefined
}

export interface StopChangesOptions {
  /** Also forgets where the consumer stopped, so that changes are no longer kept for it. */
  readonly forget?: boolean | undefined
}

export interface ChangesParts {
  readonly store: Store
  readonly world: World
  readonly isLogged: boolean
  readonly storeFailed: (error: unknown) => void
}

/** Changes in one read. */
const PAGE = 500
/** The longest time between two reads: a hint of another process can be lost. */
const POLL_MS = 1_000
/** While a transaction that has taken a lower number is open. */
const OPEN_WRITER_MS = 20
const RETRY_MS = 1_000
/** How long a stop waits for loops that do not ask for the next change. */
const STOP_MS = 1_000
/** Jobs whose last state a reader remembers. */
const REMEMBERED = 10_000
/** Changes that all consumers have read and one read deletes. */
const TRIMMED = 5_000

/** The readers of the change log in this process. */
export class ChangeReaders {
  readonly #parts: ChangesParts
  readonly #readers = new Map<string, ChangeReader>()

  constructor(parts: ChangesParts) {
    this.#parts = parts
  }

  read(consumer: string, options: ChangesOptions = {}): AsyncGenerator<Change | ChangesEnd, void, undefined> {
    const problems = [...checkName('consumerId', consumer), ...checkFields(options, '', { fields: { end: isBoolean } })]
    if (!this.#parts.isLogged)
      problems.push({
        path: 'changeLog',
        message: 'must be true: changes are kept with millrace({ changeLog: true }) only',
      })
    if (this.#readers.has(consumer))
      problems.push({
        path: 'consumerId',
        message: `${show(consumer)} is being read in this process; stop it, or use another id`,
      })
    if (problems.length > 0) throw new InvalidOptionsError('changes()', problems)
    const reader = new ChangeReader(this.#parts, consumer, () => this.#readers.delete(consumer))
    this.#readers.set(consumer, reader)
    return reader.read(options.end === true)
  }

  /** Ends the reader of this consumer; false when there is none in this process. */
  async stop(consumer: string, options: StopChangesOptions = {}): Promise<boolean> {
    const problems = [
      ...checkName('consumerId', consumer),
      ...checkFields(options, '', { fields: { forget: isBoolean } }),
    ]
    if (problems.length > 0) throw new InvalidOptionsError('stopChanges()', problems)
    const reader = this.#readers.get(consumer)
    if (reader !== undefined) await this.#stop([reader])
    if (options.forget !== true) return reader !== undefined
    return (await this.#parts.store.changeLog.dropConsumer(consumer)) || reader !== undefined
  }

  /** Ends all readers of this process, and returns how many there were. */
  async stopAll(): Promise<number> {
    const readers = [...this.#readers.values()]
    await this.#stop(readers)
    return readers.length
  }

  /** A loop that does not ask for the next change ends when it does. */
  async #stop(readers: readonly ChangeReader[]): Promise<void> {
    for (const reader of readers) reader.stop()
    await settledWithin(this.#parts.world.timers, Promise.all(readers.map(({ ended }) => ended)), STOP_MS)
  }
}

class ChangeReader {
  readonly #parts: ChangesParts
  readonly #consumer: string
  readonly #over: () => void
  readonly #id: string
  /** The last state of a job: a job that is claimed in advance and released is written as ready again. */
  readonly #states = new Map<string, State>()
  #isStopped = false
  #wake: () => void = () => undefined
  #isHinted = false
  #end: () => void = () => undefined
  #hasBegun = false
  /** Resolves when the position is saved. */
  readonly ended = new Promise<void>((resolve) => (this.#end = resolve))

  constructor(parts: ChangesParts, consumer: string, over: () => void) {
    this.#parts = parts
    this.#consumer = consumer
    this.#over = over
    this.#id = parts.world.ids.workerId()
  }

  stop(): void {
    this.#isStopped = true
    this.#wake()
    if (!this.#hasBegun) this.#ended()
  }

  #ended(): void {
    this.#over()
    this.#end()
  }

  async *read(marksEnd: boolean): AsyncGenerator<Change | ChangesEnd, void, undefined> {
    const { store } = this.#parts
    this.#hasBegun = true
    const stopHints = store.changes.onHint(() => this.#hint())
    let read: number | undefined
    let [after, bound]: [number | undefined, ChangeBound | undefined] = [undefined, undefined]
    try {
      await this.#repeat(() => store.changeLog.openReader(this.#consumer, this.#id))
      while (!this.#isStopped) {
        this.#isHinted = false
        const request: ReadChanges = { consumer: this.#consumer, reader: this.#id, after, limit: PAGE, bound }
        const page: ChangePage | null | undefined = await this.#repeat(() => store.changeLog.readChanges(request))
        if (page === undefined) break
        if (page === null)
          throw new LeaseLostError(`changes(${show(this.#consumer)}): another reader has this consumer`)
        for (const row of page.rows) {
          if (this.#isStopped) break
          read = row.number
          if (this.#isNew(row)) yield toChange(row)
        }
        if (this.#isStopped) break
        ;[after, bound] = [page.after, page.bound]
        read = page.after
        if (page.rows.length > 0) await this.#save(read)
        if (bound === undefined) await this.#pause(POLL_MS)
        else if (bound.writers.length > 0) await this.#pause(OPEN_WRITER_MS)
      }
    } finally {
      stopHints()
      await this.#save(read)
      this.#ended()
    }
    if (marksEnd) yield { kind: 'end' }
  }

  async #save(read: number | undefined): Promise<void> {
    if (read === undefined) return
    const { changeLog } = this.#parts.store
    try {
      await changeLog.saveRead(this.#consumer, this.#id, read)
      await changeLog.trimChanges(TRIMMED)
    } catch (error) {
      // The changes since the last position that was saved come again.
      this.#parts.storeFailed(error)
    }
  }

  #isNew({ id, state }: ChangeRow): boolean {
    if (this.#states.get(id) === state) return false
    this.#states.delete(id)
    this.#states.set(id, state)
    const [oldest] = this.#states.keys()
    if (this.#states.size > REMEMBERED && oldest !== undefined) this.#states.delete(oldest)
    return true
  }

  #hint(): void {
    this.#isHinted = true
    this.#wake()
  }

  #pause(ms: number): Promise<void> {
    if (this.#isHinted || this.#isStopped) return Promise.resolve()
    return new Promise((resolve) => {
      const cancel = this.#parts.world.timers.after(ms, resolve)
      this.#wake = () => {
        cancel()
        resolve()
      }
    })
  }

  /** Until the store answers, or the reader is stopped. */
  async #repeat<T>(call: () => Promise<T>): Promise<T | undefined> {
    while (!this.#isStopped) {
      try {
        return await call()
      } catch (error) {
        this.#parts.storeFailed(error)
        this.#isHinted = false
        await this.#pause(RETRY_MS)
      }
    }
    return undefined
  }
}

function toChange({ number, at, id, job, queue, state }: ChangeRow): Change {
  return { kind: 'change', number, at: new Date(at), id, job, queue, state }
}

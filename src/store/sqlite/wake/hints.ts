import type { Cancel } from '../../../world/timers.js'
import type { Watch } from '../../../world/watch.js'
import type { World } from '../../../world/world.js'
import type { Hint } from '../../store.js'
import type { FileIdentity } from '../file/file-identity.js'
import type { Session } from '../connection/session.js'
import { ALL_KINDS_HINT, Wake } from './wake.js'

export interface HintsParts {
  readonly session: Session
  /** The database's path; a database in memory has no other processes. */
  readonly path: string
  readonly world: World
  /** How to watch for commits of other processes; without it they are found by polling alone. */
  readonly watch: Watch | undefined
  /** Verified before a wake file is created. */
  readonly identity?: FileIdentity | undefined
  /** Writes a warning to the log. */
  readonly note: (sentence: string) => void
}

/** The listeners for commits of this process and of others. */
export class Hints {
  /** A worker of this process claims jobs. */
  hasLocalWorker = false
  readonly #session: Session
  readonly #wake: Wake | undefined
  readonly #listeners = new Set<(hint: Hint) => void>()
  #madeReady = false

  constructor(parts: HintsParts) {
    this.#session = parts.session
    if (parts.watch !== undefined && parts.path !== ':memory:') this.#wake = this.#openWake(parts, parts.watch)
  }

  on(callback: (hint: Hint) => void): Cancel {
    this.#listeners.add(callback)
    this.#wake?.listen()
    return () => {
      this.#listeners.delete(callback)
      if (this.#listeners.size === 0) this.#wake?.stopListening()
    }
  }

  /** A transaction of the session was committed. */
  committed(): void {
    const hint = this.#session.takeHint()
    if (hint === undefined) return
    if (hint.ready) this.#madeReady = true
    this.#wake?.publish(hint)
    this.#pass(hint)
  }

  /**
   * Whether this process has made a job ready since the last call: then a claim need not check first whether there is
   * one.
   */
  takeMadeReady(): boolean {
    const made = this.#madeReady
    this.#madeReady = false
    return made
  }

  /** A connection of the user, in this process, committed writes of the store: no other hint reports that. */
  callerCommitted(): void {
    this.#wake?.publish(ALL_KINDS_HINT)
    this.#pass(ALL_KINDS_HINT)
  }

  /** Changes with every commit of another connection than the session's own; -1 when it cannot be read now. */
  version(): number {
    try {
      return (this.#session.statement(this.#session.queries.dataVersion).get() as { data_version: number }).data_version
    } catch {
      return -1 // Busy or recovering: the file is changing, and a check costs little.
    }
  }

  close(): void {
    this.#wake?.close()
  }

  #pass(hint: Hint): void {
    for (const listener of this.#listeners) listener(hint)
  }

  #openWake({ path, world, note, identity }: HintsParts, watch: Watch): Wake {
    return new Wake({
      path,
      verify: () => identity?.verify(),
      world,
      watch,
      note,
      version: () => this.version(),
      hasLocalWorker: () => this.hasLocalWorker,
      isReady: () => this.#isReady(),
      onHint: (hint) => this.#pass(hint),
    })
  }

  #isReady(): boolean {
    try {
      return this.#session.statement(this.#session.queries.anyReady).all().length > 0
    } catch {
      return true // It cannot be read now: let the other processes check.
    }
  }
}

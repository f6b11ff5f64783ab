import type { Claim } from '../store.js'
import { byFence, confirmJobs } from './claim.js'
import type { Session } from './session.js'

/**
 * Which claims need not be asked about. A held job is confirmed before it begins, many times a second, and nearly always
 * nobody has committed anything since its claim was made or last confirmed. That is what a claim's stamp says: the
 * connection's `data_version` (commits of others) and a count of our own commands that can take a job away.
 */
export class Confirmed {
  readonly #session: Session
  readonly #stamps = new Map<number, string>()
  #takings = 0

  constructor(session: Session) {
    this.#session = session
  }

  /** A command of this process may take a held job away. */
  noteTaking(): void {
    this.#takings += 1
  }

  claimed(fence: number): void {
    this.#stamps.set(fence, this.#stamp())
  }

  closed(fences: readonly number[]): void {
    for (const fence of fences) this.#stamps.delete(fence)
  }

  confirm(claims: readonly Claim[]): Set<number> {
    const now = this.#stamp()
    const doubtful = claims.filter((claim) => this.#stamps.get(claim.fence) !== now)
    if (doubtful.length === 0) return new Set(claims.map((claim) => claim.ref))
    const confirmed = confirmJobs(this.#session, doubtful)
    for (const fence of byFence(doubtful).keys()) this.#stamps.set(fence, now)
    for (const claim of claims) if (!doubtful.includes(claim)) confirmed.add(claim.ref)
    return confirmed
  }

  #stamp(): string {
    const { data_version: version } = this.#session.statement(this.#session.queries.dataVersion).get() as {
      data_version: number
    }
    return `${version} ${this.#takings}`
  }
}

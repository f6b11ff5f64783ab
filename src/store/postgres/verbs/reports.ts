import type { Report, SettledJob } from '../../store.js'

/** Which jobs have reports, and which of those have ended, so that their reports can go. */
export class Reports {
  readonly #reported = new Set<number>()
  readonly #over = new Set<number>()

  noted(reports: readonly Report[]): void {
    for (const { ref } of reports) this.#reported.add(ref)
  }

  /** What was settled stays so, whether or not its reports could be dropped: they go with a later settlement. */
  async settled(settled: readonly SettledJob[], drop: (refs: readonly number[]) => Promise<unknown>): Promise<void> {
    for (const { ref } of settled) if (this.#reported.delete(ref)) this.#over.add(ref)
    if (this.#over.size === 0) return
    const over = [...this.#over]
    // Out of reach for now: a report counts for nothing without its claim.
    await drop(over)
      .then(() => over.forEach((ref) => this.#over.delete(ref)))
      .catch(() => undefined)
  }
}

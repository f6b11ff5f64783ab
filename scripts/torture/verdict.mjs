/** How many findings are printed for each broken promise. */
const SHOWN = 3

/**
 * The result of a run: each promise is one line and counts as one. A run can also be void (it proved nothing, exit 2) or
 * skipped (this machine cannot run it, with the reason).
 */
export class Verdict {
  #promises = []
  #void
  #skip

  /** Records whether a promise held; `evidence` is printed either way. */
  expect(promise, holds, evidence = '') {
    this.#promises.push({ promise, holds, evidence })
  }
  /** Records a promise that holds when no violation was found; the first few findings are the evidence. */
  none(promise, found, evidence = '') {
    const shown = [evidence, ...found.slice(0, SHOWN)].filter((text) => text !== '')
    this.expect(promise, found.length === 0, shown.length === 0 ? 'none' : shown.join(' | '))
  }
  void(reason) {
    this.#void = reason
  }
  skip(reason) {
    this.#skip = reason
  }

  print() {
    for (const { promise, holds, evidence } of this.#promises)
      console.log(`${holds ? '✓' : '✗'} ${promise}${evidence === '' ? '' : `: ${evidence}`}`)
    if (this.#void !== undefined) console.log(`VOID, this run proves nothing: ${this.#void}`)
    if (this.#skip !== undefined) console.log(`skipped: ${this.#skip}`)
    const failed = this.#promises.filter((each) => !each.holds).length
    const skipped = this.#skip === undefined ? '' : ', 1 skipped'
    console.log(`\n${this.#promises.length - failed} passed, ${failed} failed${skipped}`)
  }

  get exitCode() {
    if (this.#promises.some((each) => !each.holds)) return 1
    return this.#void === undefined ? 0 : 2
  }
}

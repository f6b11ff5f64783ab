/**
 * What a run has shown: each promise is one line and counts one. A run can also be void (it proved nothing, exit 2) or
 * skipped (it cannot be done on this machine, and says why).
 */
export class Verdict {
  #promises = []
  #void
  #skip

  /** Notes whether a promise held; `evidence` is printed either way. */
  expect(promise, holds, evidence = '') {
    this.#promises.push({ promise, holds, evidence })
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

const BAR_WIDTH = 30
/** Without a terminal, a line at each tenth is enough for a log. */
const PLAIN_STEPS = 10

/** The progress of a run: one line that is redrawn on a terminal, plain lines elsewhere. */
export class Progress {
  #title
  #total
  #done = 0
  #began = performance.now()

  constructor(title, total) {
    this.#title = title
    this.#total = Math.max(1, total)
  }

  /** One more is done; `note` is printed beside it. */
  step(note = '') {
    this.#done += 1
    const text = `${this.#title} ${this.#done}/${this.#total} ${note}`.trimEnd()
    if (process.stdout.isTTY) this.#draw(text)
    else if (this.#isTenth()) console.log(`  ${text} (${this.#seconds()} s)`)
  }

  end() {
    if (process.stdout.isTTY) process.stdout.write('\r\u001b[2K')
  }

  #draw(text) {
    const filled = Math.round((this.#done / this.#total) * BAR_WIDTH)
    const bar = '█'.repeat(Math.min(BAR_WIDTH, filled)).padEnd(BAR_WIDTH, '░')
    process.stdout.write(`\r\u001b[2K${bar} ${text} ${this.#seconds()} s`.slice(0, (process.stdout.columns ?? 100) + 5))
  }

  #isTenth() {
    const tenth = (done) => Math.floor((done * PLAIN_STEPS) / this.#total)
    return tenth(this.#done) > tenth(this.#done - 1)
  }

  #seconds() {
    return ((performance.now() - this.#began) / 1000).toFixed(0)
  }
}

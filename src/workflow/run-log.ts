import type { NewStep } from '../store/sequences.js'
import type { InboxRow, StepRow } from '../store/workflows.js'
import type { LogRead } from './host.js'
import { asStored, bytesOf, CANCEL, readNote, rowOf, writeNote } from './log-row.js'
import type { DEADLINE, LogNote } from './log-row.js'
import type { Operation } from './operation.js'

/** The most bytes of the answers of a run. */
const LOG_MAX_BYTES = 64 * 1024 * 1024
/** Lines that one row keeps. */
const LOG_LINES_MAX = 100

/** The log of one run as its driver knows it: what is recorded and not given yet, the next number, and what the next row carries. */
export class RunLog {
  run = 0
  /** The run that the body sees as 0. */
  firstRun = 0
  /** Answers that are written and not given, in order. */
  recorded: StepRow[] = []
  /** Open rows whose operations have not been called yet. */
  readonly uncalled = new Map<string, StepRow>()
  nextNo = 0
  /** The number of the answer last given. */
  lastNo = -1
  /** Answers given so far. */
  given = 0
  /** The store's time of the answer last given; before the first, when the run began. */
  givenAt = 0
  beganAt = 0
  #bytes = 0
  readonly #versions = new Map<string, number>()
  /** What the next row carries beside its own note. */
  #nextNote: LogNote = NO_NOTE

  /** Answers that the claim found in the store, and that are not given yet. */
  readonly #replayed = new Set<StepRow>()

  /**
   * Everything that was recorded before this claim has been given and called: what the body does now, it does for the first time,
   * also in the turns between two answers of one commit.
   */
  get isLive(): boolean {
    return this.#replayed.size === 0 && this.uncalled.size === 0
  }

  /** An answer is given, or is not: its operation was rejected. */
  remove(row: StepRow): void {
    this.recorded.splice(this.recorded.indexOf(row), 1)
    this.#replayed.delete(row)
  }

  load({ run, firstRun = 0, nextNo = 0 }: LogRead, rows: readonly StepRow[], now: number): void {
    this.run = run
    this.firstRun = firstRun
    this.nextNo = nextNo
    this.beganAt = now
    for (const row of rows) {
      const note = readNote(row.note)
      if (note.beganAt !== undefined) this.beganAt = note.beganAt
      for (const [id, version] of Object.entries(note.versions ?? {})) this.#versions.set(id, version)
      if (row.no === null) this.uncalled.set(row.address, row)
      else {
        this.recorded.push(row)
        this.#replayed.add(row)
        this.nextNo = Math.max(this.nextNo, row.no + 1)
        this.#bytes += bytesOf(row)
      }
    }
    if (rows.length === 0) this.#nextNote = { beganAt: now }
    this.givenAt = this.beganAt
  }

  /** The first number for an id holds for the whole run; it is written with the next row. */
  version(id: string, latest: number): number {
    const known = this.#versions.get(id)
    if (known !== undefined) return known
    const version = this.isLive ? latest : 0
    this.#versions.set(id, version)
    this.#nextNote = { ...this.#nextNote, versions: { ...this.#nextNote.versions, [id]: version } }
    return version
  }

  addLine(line: string): void {
    const { log: lines = [] } = this.#nextNote
    if (lines.length < LOG_LINES_MAX) this.#nextNote = { ...this.#nextNote, log: [...lines, line] }
  }

  /** False when the next row carries that warning already. */
  addWarning(warning: string): boolean {
    const { warnings = [] } = this.#nextNote
    if (warnings.includes(warning)) return false
    this.#nextNote = { ...this.#nextNote, warnings: [...warnings, warning] }
    return true
  }

  /** The row of an operation, with what is due to be written with the next one. */
  rowOf(operation: Operation, no: number | null, now: number, answer?: Pick<NewStep, 'value' | 'error'>): NewStep {
    if (this.#nextNote !== NO_NOTE) {
      operation.note = merged(operation.note, this.#nextNote)
      this.#nextNote = NO_NOTE
    }
    return rowOf(operation, this.run, no, this.#answerTime(now), answer)
  }

  /** The row of a cancel or of a passed deadline. */
  endRow(address: typeof CANCEL | typeof DEADLINE, now: number, cancel?: InboxRow): NewStep {
    const at = this.#answerTime(now)
    const note = writeNote(this.#nextNote)
    this.#nextNote = NO_NOTE
    return {
      run: this.run,
      address,
      kind: address === CANCEL ? 'cancel' : 'deadline',
      no: this.nextNo,
      since: this.lastNo + 1,
      attempt: 0,
      startedAt: at,
      endedAt: at,
      value: null,
      error: cancel?.error ?? null,
      note,
    }
  }

  /** An answer is committed: it is given when its turn comes. */
  written(row: NewStep): void {
    this.nextNo = Math.max(this.nextNo, (row.no as number) + 1)
    this.#bytes += bytesOf(row)
    this.recorded.push(asStored(row))
  }

  isRecorded(address: string): boolean {
    return this.recorded.some((row) => row.address === address)
  }

  /** Whether the run may have no more answers than it has and those of so many steps that act. */
  isFullWith(acting: number, steps: number): boolean {
    return this.nextNo + acting >= steps || this.#bytes >= LOG_MAX_BYTES
  }

  /** Why the run may have no more answers. */
  whyFull(steps: number): string {
    return this.nextNo >= steps
      ? `the run has ${this.nextNo} answers, and its limit is ${steps}; return w.restart(input) now and then, or raise the option steps and retry it`
      : `the answers of the run have ${this.#bytes} bytes, and the limit is ${LOG_MAX_BYTES}; return w.restart(input), or return less from steps`
  }

  /** The times of answers never go back, so that `w.now()` does not either. */
  #answerTime(now: number): number {
    return Math.max(now, this.givenAt)
  }
}

const NO_NOTE: LogNote = {}

function merged(own: LogNote, next: LogNote): LogNote {
  const log = next.log === undefined ? own.log : [...(own.log ?? []), ...next.log].slice(0, LOG_LINES_MAX)
  const warnings =
    next.warnings === undefined ? own.warnings : [...new Set([...(own.warnings ?? []), ...next.warnings])]
  return { ...own, ...next, log, warnings }
}

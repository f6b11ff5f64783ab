import type { ErrorRecord } from '../../../codec/error-text.js'
import { REDACTED, Redactor } from '../../../job/secrets/redact.js'
import type { RedactRule } from '../../../job/secrets/redact.js'
import { firstAppFrame } from './app-frame.js'
import type { ErrorShown } from '../../protocol/jobs.js'
import type { ShownValue } from '../../protocol/shown.js'
import type { Role } from '../../protocol/verbs.js'
import { shownText, toShown } from './shown.js'

/** Bytes of a value that are sent at first, and when all of it is asked for. */
export const SHOWN_BYTES = 65_536
export const SHOWN_ALL_BYTES = 1_048_576
/** Characters of an error's message in a row of a list. */
const MESSAGE_MAX = 500
const CAUSES_MAX = 8

/**
 * Every value, text and error of the app passes here before it is encoded: it is the server's only caller of the rules that hide. One for
 * each role.
 */
export class Show {
  readonly role: Role
  readonly #redactor: Redactor

  constructor(rules: readonly RedactRule[], role: Role) {
    this.role = role
    this.#redactor = new Redactor(rules)
  }

  text(text: string): string
  text(text: string | undefined): string | null
  text(text: string | undefined): string | null {
    return text === undefined ? null : this.#redactor.text(text, this.role)
  }

  lines(lines: readonly string[] | undefined): readonly string[] {
    return (lines ?? []).map((line) => this.text(line))
  }

  /** A value under its path, such as 'payload'. */
  value(value: unknown, path: string, bytesMax: number = SHOWN_BYTES): ShownValue {
    const shown = toShown(this.plain(value, path), bytesMax)
    const text = shownText(shown.value)
    return { ...shown, text, isRedacted: text.includes(REDACTED) }
  }

  /** A copy of a value without what is hidden. */
  plain(value: unknown, path: string): unknown {
    return this.#redactor.value(value, path, this.role)
  }

  /** Whether anything of a value is hidden from this role: a search must not find by it. */
  hides(value: unknown, path: string): boolean {
    return JSON.stringify(toShown(this.plain(value, path), SHOWN_ALL_BYTES).value).includes(REDACTED)
  }

  error(error: ErrorRecord | undefined): ErrorShown | null {
    return error === undefined ? null : this.#error(this.#redactor.error(error, 'error', this.role), CAUSES_MAX)
  }

  /** The error of a row of a list. */
  errorLine(error: ErrorRecord | undefined): Pick<ErrorShown, 'name' | 'message' | 'code'> | null {
    if (error === undefined) return null
    const message = this.text(error.message)
    return { name: error.type ?? error.name, message: message.slice(0, MESSAGE_MAX), code: error.code ?? null }
  }

  #error(error: ErrorRecord, causes: number): ErrorShown {
    return {
      name: error.type ?? error.name,
      message: error.message,
      code: error.code ?? null,
      stack: error.stack ?? null,
      place: error.stack === undefined ? null : firstAppFrame(error.stack),
      props: error.props ?? null,
      cause: error.cause === undefined || causes === 0 ? null : this.#error(error.cause, causes - 1),
      errors: causes === 0 ? [] : (error.errors ?? []).map((each) => this.#error(each, causes - 1)),
    }
  }
}

/** What a job with `encrypt` threw and logged is no more readable than its payload. */
export function sealedError(error: ErrorRecord | undefined): ErrorRecord | undefined {
  return error === undefined ? undefined : { name: error.type ?? error.name, message: 'encrypted' }
}

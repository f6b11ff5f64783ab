import { show } from '../../codec/show.js'
import type { ErrorRecord } from '../../codec/error-text.js'
import type { Check } from '../definition/check-fields.js'
import type { JobRecord } from '../record.js'

/** Where a value is that may be shown: its path, such as `payload.user.card`, and the role of the reader where there is one. */
export interface ShownPlace {
  readonly path: string
  readonly role?: string | undefined
}

/** A key name at any depth, whatever its case; a pattern of key names; or a function that returns true for what to hide. */
export type RedactRule = string | RegExp | ((place: ShownPlace) => boolean)

/** What is shown instead. */
export const REDACTED = '‹redacted›'

/** A value may be nested this deep; what is deeper is hidden. */
const DEPTH_MAX = 100

/**
 * Hides parts of values wherever they are shown: log lines, the command line, the dashboard. This is the only code that does. What is
 * stored, and what handlers, hooks and `mill.get` get, is not changed.
 */
export class Redactor {
  readonly #names: ReadonlySet<string>
  readonly #patterns: readonly RegExp[]
  readonly #functions: readonly ((place: ShownPlace) => boolean)[]

  constructor(rules: readonly RedactRule[]) {
    this.#names = new Set(rules.filter((rule) => typeof rule === 'string').map((name) => name.toLowerCase()))
    // Without g and y: with them, a test would depend on the one before.
    this.#patterns = rules
      .filter((rule) => rule instanceof RegExp)
      .map(({ source, flags }) => new RegExp(source, flags.replace(/[gy]/g, '')))
    this.#functions = rules.filter((rule) => typeof rule === 'function')
  }

  /** A copy of a value without what the rules hide; `path` is what the value is called. */
  value(value: unknown, path: string, role?: string): unknown {
    return this.#copy(value, { path, role }, 0)
  }

  /** A text in which a hidden name has a value: `card=4111`, `card: 4111`, `"card":"4111"`. */
  text(text: string, role?: string): string {
    let shown = ''
    let from = 0
    for (const match of text.matchAll(NAME)) {
      const [found, name, sign] = match as unknown as [string, string, string]
      const valueAt = match.index + found.length
      // A name inside a value that is hidden already.
      if (match.index < from || valueAt >= text.length || !this.#hides(name, { path: name, role })) continue
      shown += text.slice(from, valueAt) + REDACTED
      from = valueEnd(text, valueAt, sign)
    }
    return shown + text.slice(from)
  }

  error(error: ErrorRecord, path = 'error', role?: string): ErrorRecord {
    const { message, stack, props, cause, errors } = error
    return {
      ...error,
      message: this.text(message, role),
      ...(stack === undefined ? {} : { stack: this.text(stack, role) }),
      ...(props === undefined ? {} : { props: this.value(props, path, role) as NonNullable<ErrorRecord['props']> }),
      ...(cause === undefined ? {} : { cause: this.error(cause, `${path}.cause`, role) }),
      ...(errors === undefined
        ? {}
        : { errors: errors.map((each, i) => this.error(each, `${path}.errors[${i}]`, role)) }),
    }
  }

  /** A record as it is shown to a reader of this role. */
  record(record: JobRecord, role?: string): JobRecord {
    const { payload, result, error, meta, captured, attempts, reason, title } = record
    const { raw: _raw, ...rest } = record
    return {
      ...rest,
      title: title === undefined ? undefined : this.text(title, role),
      payload: this.value(payload, 'payload', role),
      result: this.value(result, 'result', role),
      meta: this.value(meta, 'meta', role),
      captured: this.value(captured, 'captured', role) as JobRecord['captured'],
      reason: reason === undefined ? undefined : this.text(reason, role),
      error: error === undefined ? undefined : this.error(error, 'error', role),
      attempts: attempts.map((attempt) => ({
        ...attempt,
        ...(attempt.error === undefined ? {} : { error: this.error(attempt.error, 'error', role) }),
        ...(attempt.log === undefined ? {} : { log: attempt.log.map((line) => this.text(line, role)) }),
      })),
    }
  }

  #copy(value: unknown, place: ShownPlace, depth: number): unknown {
    if (typeof value === 'string') return this.text(value, place.role)
    if (typeof value !== 'object' || value === null) return value
    if (depth > DEPTH_MAX) return REDACTED
    if (Array.isArray(value)) return value.map((one, i) => this.#copy(one, at(place, `[${i}]`), depth + 1))
    if (value instanceof Map) return new Map([...value].map((entry) => this.#entry(entry, place, depth)))
    if (value instanceof Set)
      return new Set([...value].map((one, i) => this.#copy(one, at(place, `[${i}]`), depth + 1)))
    if (!isRecord(value)) return value
    return Object.fromEntries(Object.entries(value).map((entry) => this.#entry(entry, place, depth)))
  }

  #entry<K>([key, value]: readonly [K, unknown], place: ShownPlace, depth: number): readonly [K, unknown] {
    const name = String(key)
    const inside = at(place, `.${name}`)
    return [key, this.#hides(name, inside) ? REDACTED : this.#copy(value, inside, depth + 1)]
  }

  #hides(name: string, place: ShownPlace): boolean {
    if (this.#names.has(name.toLowerCase()) || this.#patterns.some((pattern) => pattern.test(name))) return true
    return this.#functions.some((rule) => isHiddenBy(rule, place))
  }
}

/** The name of a value in a text, and the sign after it. A name of more characters is not searched. */
const NAME = /(?<![\w$.-])([\w$.-]{1,64})["']?\s{0,3}([:=])\s{0,3}/g

/** Where a value ends. If that is not certain, it is hidden to the end: rather too much than too little. */
function valueEnd(text: string, from: number, sign: string): number {
  const first = text[from] as string
  if (first === '"' || first === "'") return quoteEnd(text, from, first)
  if (first === '{' || first === '[') return bracketEnd(text, from)
  // After a colon the value may have blanks, as in `authorization: Bearer …`.
  const end = (sign === '=' ? /[\s,;&})\]"']/g : /[\n,;&})\]"']/g).exec(text.slice(from))
  return end === null ? text.length : from + end.index
}

function quoteEnd(text: string, from: number, quote: string): number {
  for (let at = from + 1; at < text.length; at += text[at] === '\\' ? 2 : 1) if (text[at] === quote) return at + 1
  return text.length
}

function bracketEnd(text: string, from: number): number {
  let depth = 0
  for (let at = from; at < text.length; at += 1) {
    const character = text[at] as string
    if (character === '"') at = quoteEnd(text, at, character) - 1
    else if (character === '{' || character === '[') depth += 1
    else if (character === '}' || character === ']') depth -= 1
    if (depth === 0) return at + 1
  }
  return text.length
}

const at = ({ path, role }: ShownPlace, step: string): ShownPlace => ({ path: path + step, role })

/** A rule that throws hides: a mistake in it must not show a secret. */
function isHiddenBy(rule: (place: ShownPlace) => boolean, place: ShownPlace): boolean {
  try {
    return rule(place) !== false
  } catch {
    return true
  }
}

/** Dates, buffers and instances of classes are shown as they are; instances have their own way to show themselves. */
function isRecord(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}

export const isRedact: Check = (value) => {
  if (!Array.isArray(value))
    return `must be a list of key names, patterns and functions, got ${show(value)}${typeof value === 'string' ? `; did you mean [${show(value)}]?` : ''}`
  return Array.from<unknown>(value).flatMap((rule, i) => {
    if ((typeof rule === 'string' && rule !== '') || rule instanceof RegExp || typeof rule === 'function') return []
    return [{ path: `[${i}]`, message: `must be a key name, a pattern or a function, got ${show(rule)}` }]
  })
}

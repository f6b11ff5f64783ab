/** What one call of `ctx.log` says. */
export interface Logged {
  /** For the logger, beside the job's own fields. */
  readonly fields: object
  readonly message: string
  /** All of it as one line of text, for the job's history. */
  readonly line: string
}

/** In pino's shape: an object, or an error, that comes first is fields. What follows is the message. It never throws. */
export function readLogged(parts: readonly unknown[]): Logged {
  const [first, ...rest] = parts
  if (isError(first)) {
    const message = rest.length === 0 ? first.message : inspectParts(rest)
    return { fields: { err: first }, message, line: inspectParts([...rest, first]) }
  }
  if (!isFields(first)) return { fields: {}, message: inspectParts(parts), line: inspectParts(parts) }
  return { fields: { ...first }, message: inspectParts(rest), line: inspectParts([...rest, first]) }
}

function isError(part: unknown): part is Error {
  try {
    return part instanceof Error
  } catch {
    return false // A proxy that throws.
  }
}

/** An object that was written as one: of a class, it is a value like any other. */
function isFields(part: unknown): part is object {
  if (typeof part !== 'object' || part === null) return false
  try {
    const prototype: unknown = Object.getPrototypeOf(part)
    // Read now: a getter that throws must not cost the handler its log line.
    return (prototype === Object.prototype || prototype === null) && Object.values(part).length > 0
  } catch {
    return false
  }
}

/** Turns what a handler logged into one line of text, as `console.log` would show it, without ever throwing. */
export function inspectParts(parts: readonly unknown[]): string {
  return parts.map(inspectPart).join(' ')
}

function inspectPart(part: unknown): string {
  if (typeof part === 'string') return part
  try {
    if (part instanceof Error) return errorText(part)
    if (typeof part === 'object' && part !== null) return JSON.stringify(part, withErrors) ?? '[unprintable]'
    return String(part)
  } catch {
    return '[unprintable]' // A getter that throws, a cycle: a log line is never worth a failed job.
  }
}

/** JSON of an error is {}. */
function withErrors(_: string, value: unknown): unknown {
  return value instanceof Error ? errorText(value) : value
}

function errorText(error: Error): string {
  return `${error.name}: ${error.message}`
}

/** The arguments of one call of `ctx.log`, as fields, message and text. */
export interface Logged {
  /** Fields for the logger, in addition to the job's own. */
  readonly fields: object
  readonly message: string
  /** All of it as one line of text, for the job's history. */
  readonly line: string
}

/** As in pino, an object or an error as the first argument becomes fields, and the rest is the message. It never throws. */
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

/** A non-empty plain object becomes fields; a class instance is part of the message. */
function isFields(part: unknown): part is object {
  try {
    // It throws on null and undefined.
    const prototype: unknown = Object.getPrototypeOf(part)
    // Read the values here: a getter that throws must not lose the log line.
    return (prototype === Object.prototype || prototype === null) && Object.values(part as object).length > 0
  } catch {
    return false
  }
}

/** The arguments as one line of text, as `console.log` would show them. It never throws. */
export function inspectParts(parts: readonly unknown[]): string {
  return parts.map(inspectPart).join(' ')
}

function inspectPart(part: unknown): string {
  try {
    if (part instanceof Error) return errorText(part)
    if (typeof part === 'object' && part !== null) return JSON.stringify(part, withErrors) ?? '[unprintable]'
    return String(part)
  } catch {
    return '[unprintable]' // A getter that throws, or a cycle: a log line must not fail the job.
  }
}

/** JSON.stringify would write an error as {}. */
function withErrors(_: string, value: unknown): unknown {
  return value instanceof Error ? errorText(value) : value
}

function errorText(error: Error): string {
  return `${error.name}: ${error.message}`
}

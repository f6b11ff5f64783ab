/** One line of an error for people; `isDetail`: a field or a frame. */
export interface ErrorLine {
  readonly text: string
  readonly isDetail: boolean
}

/** The maximum lines of a message, frames of an error, errors of an aggregate, and errors in total. */
const MESSAGE_LINES_MAX = 10
const FRAMES_MAX = 5
const ERRORS_MAX = 8

/**
 * An error as the built-in logger shows it: its message, its fields, the first frames of the app's code, and its causes.
 * It never throws: the error may be any object of the app.
 */
export function errorLines(thrown: unknown): readonly ErrorLine[] {
  try {
    return linesOf(thrown, '', new Set())
  } catch {
    return [{ text: 'an error that cannot be shown', isDetail: false }]
  }
}

function linesOf(thrown: unknown, label: string, shown: Set<unknown>): ErrorLine[] {
  if (shown.has(thrown) || shown.size >= ERRORS_MAX) return []
  shown.add(thrown)
  if (typeof thrown !== 'object' || thrown === null) return headLines(`${label}${String(thrown)}`)
  const { name, message, stack, cause, errors, ...fields } = thrown as Readonly<Record<string, unknown>>
  const details = [fieldsText(fields), ...framesOf(typeof stack === 'string' ? stack : '')].filter(
    (text) => text !== '',
  )
  return [
    ...headLines(`${label}${nameOf(thrown, name)}: ${String(message)}`),
    ...details.map((text) => ({ text: `    ${text}`, isDetail: true })),
    ...(Array.isArray(errors) ? errors.flatMap((one) => linesOf(one, '- ', shown)) : []),
    ...(cause === undefined ? [] : linesOf(cause, 'caused by ', shown)),
  ]
}

/** The class name is more specific than an inherited `name`. */
function nameOf(error: object, name: unknown): string {
  if (typeof name === 'string' && name !== 'Error') return name
  const made = (error as { readonly constructor?: { readonly name?: unknown } }).constructor?.name
  return typeof made === 'string' && made !== 'Object' ? made : 'Error'
}

function headLines(text: string): ErrorLine[] {
  const lines = text.split('\n')
  const more = lines.length - MESSAGE_LINES_MAX
  const kept = more > 0 ? [...lines.slice(0, MESSAGE_LINES_MAX), `… ${more} more lines`] : lines
  return kept.map((line) => ({ text: line, isDetail: false }))
}

function fieldsText(fields: Readonly<Record<string, unknown>>): string {
  return Object.entries(fields)
    .filter(([, value]) => value === null || ['string', 'number', 'boolean', 'bigint'].includes(typeof value))
    .map(([name, value]) => `${name}=${fieldText(value)}`)
    .join(' ')
}

/** The folder of this package if it is not bundled: `…/dist/`. */
const OWN = /^file:\/\/(.*\/)world\/log-error\.[jt]s$/.exec(import.meta.url)?.[1]

/** The frames of the app; without any, those of its dependencies; never those of Node or of this package. */
function framesOf(stack: string): string[] {
  const frames = stack
    .split('\n')
    .filter((line) => /^\s+at /.test(line) && !line.includes('node:') && !(OWN !== undefined && line.includes(OWN)))
    .map((line) => line.trim())
  const ofApp = frames.filter((frame) => !/[\\/]node_modules[\\/]/.test(frame))
  return (ofApp.length > 0 ? ofApp : frames).slice(0, FRAMES_MAX)
}

/** A field's value on one line; text with spaces is quoted. It never throws. */
export function fieldText(value: unknown): string {
  if (typeof value === 'string') return /^[^\s"=]+$/.test(value) ? value : JSON.stringify(value)
  try {
    return (typeof value === 'object' ? JSON.stringify(value) : undefined) ?? String(value)
  } catch {
    return '[unprintable]' // A cycle, a BigInt inside, a getter that throws.
  }
}

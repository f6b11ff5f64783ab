import type { Clock } from './clock.js'
import { errorLines, fieldText } from './log-error.js'
import type { Timers } from './timers.js'

export type LogLevel = 'debug' | 'info' | 'warn' | 'error'

/** A logger in pino's call shape: fields first, then the message. */
export interface Logger {
  debug(fields: object, message: string): void
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
  isLevelEnabled?(level: string): boolean
}

/** A logger with a cheap check whether debug lines are wanted. */
export interface Log {
  readonly debugs: boolean
  write(level: LogLevel, fields: object, message: string): void
}

/** Wraps the user's logger. An error or rejection of the logger never affects a job. */
export function logTo(logger: Logger): Log {
  return {
    // Read each time: loggers change their level while a process runs.
    get debugs() {
      return wantsDebug(logger)
    },
    write(level, fields, message) {
      try {
        const returned = logger[level](fields, message) as unknown
        if (returned instanceof Promise) returned.catch(() => undefined)
      } catch {
        // The logger is the only place to report to.
      }
    },
  }
}

function wantsDebug(logger: Logger): boolean {
  try {
    return logger.isLevelEnabled?.('debug') ?? true
  } catch {
    return true // An unknown level: the logger gets every line.
  }
}

export const silentLog: Log = { debugs: false, write: () => undefined }

/** Beyond this many lines in a second, only their number is printed. */
const LINES_PER_SECOND = 20

/**
 * The built-in logger: readable lines on standard error from `level` up. Busy systems finish thousands of jobs a second: after
 * twenty lines in a second, the rest of that second is one line with their number.
 */
export function consoleLog(
  level: LogLevel,
  world: { readonly clock: Clock; readonly timers: Timers },
  print: (line: string) => void,
  isColoured = false,
): Log {
  const least = ORDER[level]
  const paint = isColoured ? inColour : plain
  let shown = 0
  let more = 0
  let counting = false
  const endSecond = (): void => {
    if (more > 0)
      print(line('info', {}, `… and ${more.toLocaleString('en')} more in that second`, world.clock.now(), paint))
    counting = false
    shown = 0
    more = 0
  }
  return {
    debugs: least <= ORDER.debug,
    write(at, fields, message) {
      if (ORDER[at] < least) return
      if (!counting) {
        counting = true
        world.timers.after(1_000, endSecond, { idle: true })
      }
      // Warnings and errors are always printed.
      if (at === 'debug' || at === 'info') {
        if (shown >= LINES_PER_SECOND) {
          more += 1
          return
        }
        shown += 1
      }
      print(line(at, fields, message, world.clock.now(), paint))
    },
  }
}

const ORDER: { readonly [level in LogLevel]: number } = { debug: 0, info: 1, warn: 2, error: 3 }

/** A text in the colour of a level, or faint. */
type Paint = (text: string, style: LogLevel | 'faint') => string

const plain: Paint = (text) => text

/** Codes of ANSI terminals: faint, green, yellow, red. */
const COLOURS = { faint: 2, debug: 2, info: 32, warn: 33, error: 31 }

const inColour: Paint = (text, style) => `\u001b[${COLOURS[style]}m${text}\u001b[0m`

function line(level: LogLevel, fields: object, message: string, now: number, paint: Paint): string {
  // The message already names the job; the field is for loggers that are searched.
  const { err, job: _, ...rest } = fields as { err?: unknown; job?: unknown }
  const pairs = Object.entries(rest)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${oneLine(name)}=${oneLine(fieldText(value))}`)
  const parts = [paint(stamp(now), 'faint'), paint(level.padEnd(5), level), oneLine(message)]
  if (pairs.length > 0) parts.push(paint(pairs.join(' '), 'faint'))
  // A message that equals the error's is not repeated.
  const below = err === undefined ? [] : errorLines(err).filter(({ text }) => !text.endsWith(`: ${message}`))
  return [
    parts.join(' '),
    ...below.map(({ text, isDetail }) => `    ${paint(oneLine(text), isDetail ? 'faint' : level)}`),
  ].join('\n')
}

/** The local time of day. */
function stamp(now: number): string {
  return new Date(now - new Date(now).getTimezoneOffset() * 60_000).toISOString().slice(11, 23)
}

/** Escapes control characters: job data may contain terminal escapes. */
export function visible(text: string): string {
  return text.replace(
    /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g,
    (c) => `\\x${c.charCodeAt(0).toString(16).padStart(2, '0')}`,
  )
}

/** A line break in a job's text must not forge a line of the log. */
function oneLine(text: string): string {
  return visible(text).replaceAll('\n', '\\n')
}

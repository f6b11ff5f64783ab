import type { Clock } from './clock.js'
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

/** A logger that answers cheaply whether a line is wanted at all. */
export interface Log {
  readonly debugs: boolean
  write(level: LogLevel, fields: object, message: string): void
}

/** Wraps the user's logger. Its faults are its own: one that throws, or rejects, never costs a job. */
export function logTo(logger: Logger): Log {
  return {
    // Asked anew each time: loggers change their level while a process runs.
    get debugs() {
      return wantsDebug(logger)
    },
    write(level, fields, message) {
      try {
        const told = logger[level](fields, message) as unknown
        if (told instanceof Promise) told.catch(() => undefined)
      } catch {
        // There is nowhere left to say so.
      }
    },
  }
}

function wantsDebug(logger: Logger): boolean {
  try {
    return logger.isLevelEnabled?.('debug') ?? true
  } catch {
    return true // It cannot say: then it gets every line.
  }
}

export const silentLog: Log = { debugs: false, write: () => undefined }

/** More lines than this in a second are told as one. */
const LINES_PER_SECOND = 20

/**
 * The built-in logger: readable lines on standard error from `level` up. Busy systems finish thousands of jobs a second,
 * and nobody reads thousands of lines: past twenty in a second, the rest of that second is told in one line.
 */
export function consoleLog(
  level: LogLevel,
  world: { readonly clock: Clock; readonly timers: Timers },
  print: (line: string) => void,
): Log {
  const least = ORDER[level]
  let shown = 0
  let more = 0
  let counting = false
  const endSecond = (): void => {
    if (more > 0) print(`${stamp(world.clock.now())} info  … and ${more.toLocaleString('en')} more in that second`)
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
      // What went wrong is never counted away.
      if (at === 'debug' || at === 'info') {
        if (shown >= LINES_PER_SECOND) {
          more += 1
          return
        }
        shown += 1
      }
      print(line(at, fields, message, world.clock.now()))
    },
  }
}

const ORDER: { readonly [level in LogLevel]: number } = { debug: 0, info: 1, warn: 2, error: 3 }

function line(level: LogLevel, fields: object, message: string, now: number): string {
  // The text names the job already; the field is for loggers that are searched.
  const { error, job: _, ...rest } = fields as { error?: unknown; job?: unknown }
  const pairs = Object.entries(rest).map(([name, value]) => `${name}=${oneLine(String(value))}`)
  const text = [stamp(now), level.padEnd(5), oneLine(message), ...pairs].join(' ')
  return error === undefined
    ? text
    : `${text}\n        ${oneLine(typeof error === 'string' ? error : JSON.stringify(error))}`
}

function stamp(now: number): string {
  return new Date(now).toISOString().slice(11, 23)
}

/** Job data may hold terminal escapes; shown, not obeyed. */
export function visible(text: string): string {
  return text.replace(
    /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g,
    (c) => `\\x${c.charCodeAt(0).toString(16).padStart(2, '0')}`,
  )
}

/** A line break in a job's own text must not be able to forge a line of the log. */
function oneLine(text: string): string {
  return visible(text).replaceAll('\n', '\\n')
}

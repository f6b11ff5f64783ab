import { describe, expect, test } from 'vitest'
import { consoleLog, logTo, silentLog, visible } from './log.js'
import type { Log, Logger, LogLevel } from './log.js'
import type { Timers } from './timers.js'

const LEVELS: readonly LogLevel[] = ['debug', 'info', 'warn', 'error']

/** A console whose second ends when the test ends it. */
function createLog(
  level: LogLevel,
  isColoured = false,
): { log: Log; lines: string[]; endSecond: () => void; timers: number } {
  const lines: string[] = []
  const waiting: (() => void)[] = []
  const timers: Timers = {
    after: (_, callback) => {
      waiting.push(callback)
      return () => undefined
    },
    soon: () => undefined,
  }
  const clock = { now: () => new Date(2026, 0, 1, 12, 34, 56, 789).getTime(), monotonic: () => 0 }
  const log = consoleLog(level, { clock, timers }, (line) => lines.push(line), isColoured)
  return {
    log,
    lines,
    endSecond: () => waiting.splice(0).forEach((end) => end()),
    get timers() {
      return waiting.length
    },
  }
}

describe('the built-in logger', () => {
  test('prints the time, the level, the message and the fields, and the error below', () => {
    const { log, lines } = createLog('info')
    const err = Object.assign(new Error('no'), { stack: 'Error: no\n    at run (/app/jobs.js:1:2)', status: 503 })
    log.write('warn', { id: 'x', job: 'mail', attempt: 2, err }, 'retrying mail')
    expect(lines).toEqual([
      '12:34:56.789 warn  retrying mail id=x attempt=2\n    Error: no\n        status=503\n        at run (/app/jobs.js:1:2)',
    ])
  })

  test('shows objects as JSON, quotes text with spaces, and omits undefined fields', () => {
    const { log, lines } = createLog('info')
    log.write('info', { to: { name: 'Ada' }, at: 'the end', n: 5n, gone: undefined }, 'mail')
    expect(lines).toEqual(['12:34:56.789 info  mail to={"name":"Ada"} at="the end" n=5'])
  })

  test('does not repeat a message that equals the message of the error', () => {
    const { log, lines } = createLog('info')
    log.write(
      'error',
      { err: Object.assign(new Error('the store is gone'), { stack: '', code: 'E' }) },
      'the store is gone',
    )
    expect(lines).toEqual(['12:34:56.789 error the store is gone\n        code=E'])
  })

  test('colours the level and the error, and dims the rest, if colours are on', () => {
    const { log, lines } = createLog('info', true)
    log.write('warn', { id: 'x', err: Object.assign(new Error('no'), { stack: '' }) }, 'retrying mail')
    expect(lines).toEqual([
      '\u001b[2m12:34:56.789\u001b[0m \u001b[33mwarn \u001b[0m retrying mail \u001b[2mid=x\u001b[0m\n    \u001b[33mError: no\u001b[0m',
    ])
  })

  test.each(LEVELS)('at %s prints that level and higher ones', (level) => {
    const { log, lines } = createLog(level)
    for (const each of LEVELS) log.write(each, {}, each)
    expect(lines.map((line) => line.split(/ +/)[1])).toEqual(LEVELS.slice(LEVELS.indexOf(level)))
    expect(log.debugs).toBe(level === 'debug')
  })

  test('after twenty lines in a second, prints the number of the others in one line', () => {
    const made = createLog('info')
    for (let i = 0; i < 1_520; i += 1) made.log.write('info', {}, `line ${i}`)
    expect(made.lines).toHaveLength(20)
    made.endSecond()
    expect(made.lines).toHaveLength(21)
    expect(made.lines[20]).toMatch(/… and 1,500 more in that second$/)
  })

  test('starts a new count with the next second', () => {
    const made = createLog('info')
    for (let i = 0; i < 30; i += 1) made.log.write('info', {}, 'a')
    made.endSecond()
    for (let i = 0; i < 20; i += 1) made.log.write('info', {}, 'b')
    expect(made.lines.filter((line) => line.endsWith(' b'))).toHaveLength(20)
    made.endSecond()
    expect(made.lines.filter((line) => line.includes('more in that second'))).toHaveLength(1)
  })

  test('prints every warning and error', () => {
    const made = createLog('debug')
    for (let i = 0; i < 100; i += 1) {
      made.log.write('info', {}, 'info')
      made.log.write('warn', {}, 'warn')
      made.log.write('error', {}, 'error')
    }
    expect(made.lines.filter((line) => line.includes('warn'))).toHaveLength(100)
    expect(made.lines.filter((line) => line.includes('error'))).toHaveLength(100)
    expect(made.lines.filter((line) => line.includes('info '))).toHaveLength(20)
  })

  test('has one timer per second, and none while nothing is logged', () => {
    const made = createLog('info')
    expect(made.timers).toBe(0)
    made.log.write('debug', {}, 'not wanted')
    expect(made.timers).toBe(0)
    for (let i = 0; i < 50; i += 1) made.log.write('info', {}, 'a')
    expect(made.timers).toBe(1)
  })

  test('escapes control characters in message, fields and error', () => {
    const { log, lines } = createLog('info')
    const evil = '\u001b[2J\u0007\u0000\u009b31m\r'
    log.write('error', { id: evil, err: new Error(`${evil}!`) }, evil)
    expect(lines[0]).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/)
    expect(lines[0]?.match(/\[2J/g)?.length).toBeGreaterThanOrEqual(3)
  })

  // A line break in a job's text could forge a line of the log.
  test('keeps a message on its own line, whatever line breaks it has', () => {
    const { log, lines } = createLog('info')
    log.write('info', { id: 'x\ny' }, 'done mail\n12:34:56.789 info  done charge id=forged')
    expect(lines[0]).not.toContain('\n')
    log.write('error', { err: new Error('no\n12:34:56.789 info  done charge\u009b2J') }, 'failed mail')
    const [, head, forged, ...frames] = lines[1]?.split('\n') ?? []
    expect([head, forged]).toEqual(['    Error: no', '    12:34:56.789 info  done charge\\x9b2J'])
    expect(frames.every((line) => line.startsWith('        at '))).toBe(true)
  })
})

test('text without escapes is shown as it is', () => {
  expect(visible('großes 日本 🎉\ttab')).toBe('großes 日本 🎉\ttab')
})

describe('a logger of the user’s', () => {
  function collect(): { logger: Logger; calls: [string, object, string][] } {
    const calls: [string, object, string][] = []
    const at =
      (level: string) =>
      (fields: object, message: string): void =>
        void calls.push([level, fields, message])
    return { calls, logger: { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') } }
  }

  test('is called in pino’s shape at the level of the line', () => {
    const { logger, calls } = collect()
    for (const level of LEVELS) logTo(logger).write(level, { id: 1 }, `at ${level}`)
    expect(calls).toEqual(LEVELS.map((level) => [level, { id: 1 }, `at ${level}`]))
  })

  test('is called with itself as this', () => {
    class Counting implements Logger {
      count = 0
      debug(): void {
        this.count += 1
      }
      info(): void {
        this.count += 1
      }
      warn(): void {
        this.count += 1
      }
      error(): void {
        this.count += 1
      }
    }
    const logger = new Counting()
    logTo(logger).write('info', {}, 'x')
    expect(logger.count).toBe(1)
  })

  test('that throws has no effect', () => {
    const throwing = (): never => {
      throw new Error('the log is full')
    }
    const log = logTo({ debug: throwing, info: throwing, warn: throwing, error: throwing })
    for (const level of LEVELS) expect(() => log.write(level, {}, 'x')).not.toThrow()
  })

  // An unhandled rejection would fail this run, and end a process.
  test('that rejects has no effect', async () => {
    const rejecting = (): Promise<void> => Promise.reject(new Error('the log is far away'))
    const log = logTo({ debug: rejecting, info: rejecting, warn: rejecting, error: rejecting } as unknown as Logger)
    for (const level of LEVELS) log.write(level, {}, 'x')
    await new Promise((resolve) => setImmediate(resolve))
  })

  test('gets debug lines unless isLevelEnabled returns false', () => {
    const { logger } = collect()
    expect(logTo(logger).debugs).toBe(true)
    expect(logTo({ ...logger, isLevelEnabled: (level) => level !== 'debug' }).debugs).toBe(false)
    expect(logTo({ ...logger, isLevelEnabled: () => true }).debugs).toBe(true)
  })

  test('gets debug lines when isLevelEnabled throws', () => {
    const { logger } = collect()
    const isLevelEnabled = (): never => {
      throw new Error('not yet set up')
    }
    expect(logTo({ ...logger, isLevelEnabled }).debugs).toBe(true)
  })
})

test('the silent log writes nothing', () => {
  expect(silentLog.debugs).toBe(false)
  expect(silentLog.write('error', {}, 'x')).toBeUndefined()
})

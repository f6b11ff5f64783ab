import { describe, expect, test } from 'vitest'
import { consoleLog, logTo, silentLog, visible } from './log.js'
import type { Log, Logger, LogLevel } from './log.js'
import type { Timers } from './timers.js'

const LEVELS: readonly LogLevel[] = ['debug', 'info', 'warn', 'error']

/** A console whose second ends when the test says so. */
function bench(level: LogLevel): { log: Log; lines: string[]; endSecond: () => void; timers: number } {
  const lines: string[] = []
  const waiting: (() => void)[] = []
  const timers: Timers = {
    after: (_, callback) => {
      waiting.push(callback)
      return () => undefined
    },
    soon: () => undefined,
  }
  const clock = { now: () => Date.UTC(2026, 0, 1, 12, 34, 56, 789), monotonic: () => 0 }
  const log = consoleLog(level, { clock, timers }, (line) => lines.push(line))
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
    const { log, lines } = bench('info')
    log.write('warn', { id: 'x', job: 'mail', tries: 2, error: 'Error: no' }, 'retrying mail')
    expect(lines).toEqual(['12:34:56.789 warn  retrying mail id=x tries=2\n        Error: no'])
  })

  test.each(LEVELS)('at %s prints that level and what is worse', (level) => {
    const { log, lines } = bench(level)
    for (const each of LEVELS) log.write(each, {}, each)
    expect(lines.map((line) => line.split(/ +/)[1])).toEqual(LEVELS.slice(LEVELS.indexOf(level)))
    expect(log.debugs).toBe(level === 'debug')
  })

  test('tells past twenty lines in a second the rest as one', () => {
    const made = bench('info')
    for (let i = 0; i < 1_520; i += 1) made.log.write('info', {}, `line ${i}`)
    expect(made.lines).toHaveLength(20)
    made.endSecond()
    expect(made.lines).toHaveLength(21)
    expect(made.lines[20]).toMatch(/… and 1,500 more in that second$/)
  })

  test('begins to count anew with the next second', () => {
    const made = bench('info')
    for (let i = 0; i < 30; i += 1) made.log.write('info', {}, 'a')
    made.endSecond()
    for (let i = 0; i < 20; i += 1) made.log.write('info', {}, 'b')
    expect(made.lines.filter((line) => line.endsWith(' b'))).toHaveLength(20)
    made.endSecond()
    expect(made.lines.filter((line) => line.includes('more in that second'))).toHaveLength(1)
  })

  test('never counts away what went wrong', () => {
    const made = bench('debug')
    for (let i = 0; i < 100; i += 1) {
      made.log.write('info', {}, 'info')
      made.log.write('warn', {}, 'warn')
      made.log.write('error', {}, 'error')
    }
    expect(made.lines.filter((line) => line.includes('warn'))).toHaveLength(100)
    expect(made.lines.filter((line) => line.includes('error'))).toHaveLength(100)
    expect(made.lines.filter((line) => line.includes('info '))).toHaveLength(20)
  })

  test('keeps one timer for a second, and none while it is silent', () => {
    const made = bench('info')
    expect(made.timers).toBe(0)
    made.log.write('debug', {}, 'not wanted')
    expect(made.timers).toBe(0)
    for (let i = 0; i < 50; i += 1) made.log.write('info', {}, 'a')
    expect(made.timers).toBe(1)
  })

  test('shows escapes and does not obey them, in message, fields and error', () => {
    const { log, lines } = bench('info')
    const evil = '\u001b[2J\u0007\u0000\u009b31m\r'
    log.write('error', { id: evil, error: evil }, evil)
    expect(lines[0]).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/)
    expect(lines[0]?.match(/\\x1b\[2J\\x07\\x00\\x9b31m\\x0d/g)).toHaveLength(3)
  })

  // A line break in a job's own text can forge a line of the log.
  test('keeps a message on its own line, whatever line breaks it has', () => {
    const { log, lines } = bench('info')
    log.write('info', { id: 'x\ny' }, 'done mail\n12:34:56.789 info  done charge id=forged')
    expect(lines[0]).not.toContain('\n')
    log.write('error', { error: 'Error: no\n12:34:56.789 info  done charge\u009b2J' }, 'failed mail')
    expect(lines[1]?.split('\n')).toHaveLength(2)
    expect(lines[1]).toContain('no\\n12:34:56.789 info  done charge\\x9b2J')
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

  test('is called on itself', () => {
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

  test('that throws costs nothing', () => {
    const throwing = (): never => {
      throw new Error('the log is full')
    }
    const log = logTo({ debug: throwing, info: throwing, warn: throwing, error: throwing })
    for (const level of LEVELS) expect(() => log.write(level, {}, 'x')).not.toThrow()
  })

  // An unhandled rejection would fail this run, and end a process.
  test('that rejects costs nothing either', async () => {
    const rejecting = (): Promise<void> => Promise.reject(new Error('the log is far away'))
    const log = logTo({ debug: rejecting, info: rejecting, warn: rejecting, error: rejecting } as unknown as Logger)
    for (const level of LEVELS) log.write(level, {}, 'x')
    await new Promise((resolve) => setImmediate(resolve))
  })

  test('is asked whether it wants debug lines, and gets them when it does not say', () => {
    const { logger } = collect()
    expect(logTo(logger).debugs).toBe(true)
    expect(logTo({ ...logger, isLevelEnabled: (level) => level !== 'debug' }).debugs).toBe(false)
    expect(logTo({ ...logger, isLevelEnabled: () => true }).debugs).toBe(true)
  })

  test('that throws when it is asked costs nothing either', () => {
    const { logger } = collect()
    const isLevelEnabled = (): never => {
      throw new Error('not yet set up')
    }
    expect(logTo({ ...logger, isLevelEnabled }).debugs).toBe(true)
  })
})

test('the silent log says nothing and wants nothing', () => {
  expect(silentLog.debugs).toBe(false)
  expect(silentLog.write('error', {}, 'x')).toBeUndefined()
})

import type { Breach } from './source.js'
import type { Ceilings } from './length.js'

/** Code that a rule would make worse, and why. An exception that no longer matches anything fails the test. */
export interface Exception {
  /** The name of the rule's test. */
  readonly rule: string
  readonly file: string
  /** Part of the message of the breach; a breach without it is not excused. */
  readonly saying: string
  readonly reason: string
}

export const EXCEPTIONS: readonly Exception[] = [
  ...['setInterval', 'setTimeout'].map((timer) => ({
    rule: 'clocks, timers and chance come only from the world',
    file: 'src/store/sqlite/connection/heartbeat.ts',
    saying: `${timer}, in a string`,
    reason:
      'The heartbeat runs in a thread of its own, started from a string; the world lives on the main thread, whose blocking it must outlive.',
  })),
  ...['setInterval', 'setTimeout', 'performance.now'].map((name) => ({
    rule: 'clocks, timers and chance come only from the world',
    file: 'src/store/loop-watch.ts',
    saying: `${name}, in a string`,
    reason: 'Part of the heartbeat thread, which watches the main thread from outside its world.',
  })),
  ...['setInterval', 'setTimeout'].map((timer) => ({
    rule: 'clocks, timers and chance come only from the world',
    file: 'src/testing/postgres/postgres-keeper.ts',
    saying: `${timer}, in a string`,
    reason:
      'The keeper of a test server is a process of its own, started from a string: it must outlive the process that has the world.',
  })),
  {
    rule: 'clocks, timers and chance come only from the world',
    file: 'src/store/postgres/connection/heartbeat.ts',
    saying: 'setTimeout, in a string',
    reason:
      'The heartbeat runs in a thread of its own, started from a string; the world lives on the main thread, whose blocking it must outlive.',
  },
  {
    rule: 'clocks, timers and chance come only from the world',
    file: 'src/worker/executors/child-program.ts',
    saying: 'setInterval, in a string',
    reason: 'It runs in a thread of a handler’s own process, and ends that process when its worker was killed.',
  },
  {
    rule: 'imports point down',
    file: 'src/mill/dashboard.ts',
    saying: 'imports src/dashboard/index.ts',
    reason: 'mill.dashboard() loads the dashboard when it is called; nothing below the dashboard needs it before.',
  },
  {
    rule: 'SQL is only under store/',
    file: 'src/testing/postgres/start-postgres.ts',
    saying: 'listen_addresses',
    reason: 'The name of a setting of the server, not a statement.',
  },
  {
    rule: 'no module keeps state',
    file: 'src/reactive/context/ambient.ts',
    saying: 'let current',
    reason:
      'Which context is running at this instant, like a call stack: set around a synchronous call and restored before control leaves.',
  },
]

/** Folders of more than 25 files, with the number they may have. It may only shrink. */
export const LARGE_FOLDERS: Ceilings = {}

/** Functions past 60 lines, as `path#name`, with the length they may have. It may only shrink. */
export const LONG_FUNCTIONS: Ceilings = {}

/** Banned words in comments and test names, by folder, with the number it may have. It may only shrink. */
export const BANNED_WORDS: Ceilings = {}

export function isExcused(breach: Breach, rule: string, exceptions: readonly Exception[]): boolean {
  return exceptions.some((each) => excuses(each, rule, breach))
}

export function excuses(exception: Exception, rule: string, breach: Breach): boolean {
  return exception.rule === rule && exception.file === breach.file && breach.what.includes(exception.saying)
}

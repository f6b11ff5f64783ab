import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { createInterface } from 'node:readline'
import { MillraceError } from '../../errors.js'
import { systemTimers } from '../../world/timers.js'

/**
 * The keeper: a small process between the tests and the server, so that the server never outlives the tests, even when they are
 * killed with -9. The tests hold the other end of its standard input. When that closes, by `stop()` or because the tests ended, the
 * keeper stops its child by pid and removes the folder. Signal handlers in the tests' process could not promise that, and would
 * change the process under test.
 *
 *     tests ──stdin──► keeper ──parent of──► initdb, then postgres
 *
 * Its program is a string, because bundlers leave out a separate file.
 */
const PROGRAM = `
const { spawn } = require('node:child_process')
const { readFileSync, rmSync } = require('node:fs')
const [folder, patienceMs] = process.argv.slice(1)
let child
let ending = false
const send = (message) => process.stdout.write(JSON.stringify(message) + '\\n')
const leave = () => {
  rmSync(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 })
  process.exit()
}
const isReady = (pidFile) => {
  try {
    return readFileSync(pidFile, 'utf8').split('\\n')[7].trim() === 'ready'
  } catch {
    return false // Not written yet, or half.
  }
}
const run = ({ program, args, options, pidFile }) => {
  let output = ''
  const keep = (text) => (output = (output + text).slice(-4000))
  const look = () => {
    if (!isReady(pidFile)) return
    clearInterval(looking)
    send({ ready: true })
  }
  const looking = pidFile === undefined ? undefined : setInterval(look, 10)
  const over = (code) => {
    clearInterval(looking)
    child = undefined
    if (ending) leave()
    else send({ code, output })
  }
  try {
    child = spawn(program, args, { ...options, stdio: ['ignore', 'pipe', 'pipe'] })
  } catch (error) {
    keep(error.message)
    return over(1)
  }
  child.stdout.on('data', keep)
  child.stderr.on('data', keep)
  child.on('error', (error) => keep(error.message))
  child.on('close', over)
}
const end = () => {
  if (ending) return
  ending = true
  if (child === undefined) return leave()
  // A session that outlives its server holds the pipes, so that they do not close.
  child.on('exit', leave)
  // To a server: SIGINT ends the sessions and shuts down, SIGQUIT leaves at once.
  child.kill('SIGINT')
  setTimeout(() => child.kill('SIGQUIT'), Number(patienceMs))
  setTimeout(() => child.kill('SIGKILL'), Number(patienceMs) * 2)
}
process.stdout.on('error', () => {}) // Nobody listens any more; the end of stdin says the same.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, end)
require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => run(JSON.parse(line))).on('close', end)
`

/** How long a server may take to shut down before it gets the signal for an immediate shutdown; and to start. */
const STOP_PATIENCE_MS = 10_000
const STEP_MAX_MS = 60_000

/** One program to run, as the user it is to run as. */
export interface Step {
  readonly program: string
  readonly args: readonly string[]
  readonly options: {
    readonly cwd: string
    readonly env: NodeJS.ProcessEnv
    readonly uid?: number
    readonly gid?: number
  }
  /** A server's own file that says when it is ready; without it the step is over when the program has ended. */
  readonly pidFile?: string
}

/** What a step came to: a server is up, or a program has ended with its last words. */
export type StepResult =
  | { readonly ready: true }
  | { readonly ready?: never; readonly code: number; readonly output: string }

export interface Keeper {
  /** Runs one program; the next one only when this has ended. */
  readonly run: (step: Step) => Promise<StepResult>
  /** Stops what runs, removes the folder, and resolves when both are gone. */
  readonly stop: () => Promise<void>
}

/** Puts a folder, and what will run in it, into the care of a process of its own. */
export function startKeeper(folder: string): Keeper {
  const { NODE_OPTIONS: _, ...env } = process.env // A loader or an inspector of the app's has no business there.
  const child = spawn(process.execPath, ['-e', PROGRAM, '--', folder, String(STOP_PATIENCE_MS)], {
    env,
    stdio: ['pipe', 'pipe', 'ignore'],
    detached: true, // Ctrl+C is for the tests; the keeper learns of it when they are gone.
  })
  const gone = new Promise<void>((resolve) => {
    child.once('close', () => resolve())
    child.once('error', () => resolve())
  })
  child.stdin.on('error', () => {}) // The keeper has ended; `gone` reports that.
  holdProcess(child, false)
  const lines = createInterface({ input: child.stdout })
  return {
    run: (step) => {
      holdProcess(child, true)
      return answer(child, lines, gone, step).finally(() => holdProcess(child, false))
    },
    stop: () => {
      holdProcess(child, true)
      child.stdin.end()
      return gone
    },
  }
}

/** A server that no test stops must not keep the tests' process alive; a call that is awaited must. */
function holdProcess(child: ChildProcess, hold: boolean): void {
  // The pipes are sockets, which the types do not say.
  const parts = [child, child.stdin, child.stdout] as unknown as readonly { ref(): void; unref(): void }[]
  for (const part of parts) part[hold ? 'ref' : 'unref']()
}

function answer(
  child: ChildProcess,
  lines: ReturnType<typeof createInterface>,
  gone: Promise<void>,
  step: Step,
): Promise<StepResult> {
  return new Promise((resolve, reject) => {
    const fail = (why: string): void =>
      reject(new MillraceError('E_POSTGRES_NOT_STARTED', `startPostgres(): ${step.program} ${why}`))
    const cancel = systemTimers.after(STEP_MAX_MS, () => fail(`was not done after ${STEP_MAX_MS / 1000} s`))
    lines.once('line', (line) => {
      cancel()
      resolve(JSON.parse(line) as StepResult)
    })
    void gone.then(() => {
      cancel()
      fail('cannot be run: the process that looks after it has ended')
    })
    child.stdin?.write(`${JSON.stringify(step)}\n`)
  })
}

import { spawn } from 'node:child_process'
import { Worker } from 'node:worker_threads'
import type { Isolation } from '../../job/definition/isolation.js'
import { CHANNEL, CHILD_PROGRAM } from './child-program.js'

/** A thread or a process that runs one attempt at a time. */
export interface Child {
  /** Throws when the value cannot be cloned. */
  send(message: unknown): void
  /** Ends it for certain. `onEnd` is called later. */
  kill(): void
  /** A child that waits for an attempt does not keep the process alive. */
  setIdle(isIdle: boolean): void
  onMessage: (message: never) => void
  /** Called once, with how it ended. */
  onEnd: (exit: string) => void
}

export const OUT_OF_MEMORY = 'out of memory'

export function startChild(isolation: Isolation): Child {
  return isolation.executor === 'thread' ? startThread(isolation) : startProcess(isolation)
}

function startThread({ module, memoryMb }: Isolation): Child {
  const thread = new Worker(CHILD_PROGRAM, {
    eval: true,
    name: 'millrace-job',
    workerData: { module },
    ...(memoryMb === undefined ? {} : { resourceLimits: { maxOldGenerationSizeMb: memoryMb } }),
  })
  let exit: string | undefined
  const child: Child = {
    send: (message) => thread.postMessage({ [CHANNEL]: message }),
    kill: () => void thread.terminate(),
    setIdle: (isIdle) => (isIdle ? thread.unref() : thread.ref()),
    onMessage: () => undefined,
    onEnd: () => undefined,
  }
  thread.on('message', (message) => receive(child, message))
  thread.on('error', (error) => {
    exit = (error as { code?: string }).code === 'ERR_WORKER_OUT_OF_MEMORY' ? OUT_OF_MEMORY : String(error)
  })
  thread.on('exit', (code) => child.onEnd(exit ?? `exit code ${code}`))
  return child
}

/** Passes on our messages, and no others. */
function receive(child: Child, message: unknown): void {
  if (typeof message === 'object' && message !== null && CHANNEL in message) child.onMessage(message[CHANNEL] as never)
}

const HAS_GROUPS = process.platform !== 'win32'

function killGroup(spawned: Spawned): void {
  if (spawned.pid === undefined || spawned.exitCode !== null || spawned.signalCode !== null) return
  try {
    process.kill(HAS_GROUPS ? -spawned.pid : spawned.pid, 'SIGKILL')
  } catch {
    // It has ended meanwhile.
  }
}

/** How much of the end of its standard error is searched for the reason of its end. */
const STDERR_KEPT = 4_096

function startProcess({ module, memoryMb }: Isolation): Child {
  const limit = memoryMb === undefined ? [] : [`--max-old-space-size=${memoryMb}`]
  const args = [...inheritedFlags(process.execArgv), ...limit, '--eval', CHILD_PROGRAM, '--', module]
  const spawned = spawn(process.execPath, args, {
    stdio: ['ignore', 'inherit', 'pipe', 'ipc'],
    serialization: 'advanced',
    // A group of its own: what the handler starts ends with it, and Ctrl-C in a terminal reaches the worker alone.
    detached: HAS_GROUPS,
  })
  let stderr = ''
  spawned.stderr?.on('data', (chunk: Buffer) => {
    process.stderr.write(chunk)
    stderr = (stderr + chunk.toString('latin1')).slice(-STDERR_KEPT)
  })
  const child: Child = {
    // The callback receives the error of a channel that is closed: `onEnd` says how the process ended.
    send: (message) => void spawned.send({ [CHANNEL]: message }, () => undefined),
    kill: () => killGroup(spawned),
    setIdle: (isIdle) => setRef(spawned, !isIdle),
    onMessage: () => undefined,
    onEnd: () => undefined,
  }
  let isEnded = false
  const end = (exit: string): void => {
    if (!isEnded) child.onEnd(exit)
    isEnded = true
  }
  spawned.on('message', (message) => receive(child, message))
  spawned.on('error', (error) => spawned.pid === undefined && end(String(error)))
  // Not 'exit': the last messages and the reason on standard error may come after it.
  spawned.on('close', (code, signal) => {
    const isFull = signal === 'SIGABRT' && stderr.includes('heap out of memory')
    end(isFull ? OUT_OF_MEMORY : signal === null ? `exit code ${code}` : `signal ${signal}`)
  })
  return child
}

type Spawned = ReturnType<typeof spawn>

function setRef(spawned: Spawned, isRef: boolean): void {
  const streams = [spawned, spawned.channel, spawned.stderr] as { ref?: () => void; unref?: () => void }[]
  for (const each of streams)
    if (isRef) each?.ref?.()
    else each?.unref?.()
}

const WITH_VALUE = /^(-e|-p|-pe|--eval|--print|--input-type)$/
const NOT_INHERITED =
  /^(--inspect|--debug|--watch|--test|--prof|--cpu-prof|--heap-prof|--max-old-space-size|--input-type|--eval|--print)/

/** The flags of this process with which a child must run too, such as a loader for TypeScript. */
export function inheritedFlags(flags: readonly string[]): string[] {
  const kept: string[] = []
  for (let i = 0; i < flags.length; i += 1) {
    const flag = flags[i] ?? ''
    if (WITH_VALUE.test(flag)) i += 1
    else if (!NOT_INHERITED.test(flag)) kept.push(flag)
  }
  return kept
}

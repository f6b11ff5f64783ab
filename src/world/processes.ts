import { readFileSync, readlinkSync } from 'node:fs'
import { url as inspectorUrl } from 'node:inspector'
import { hostname } from 'node:os'
import { digest } from './digest.js'

/** A process as the row of a worker describes it. */
export interface ProcessMark {
  readonly pid: number
  /**
   * The machine and the start time, as one opaque text: `<machine>.<start time>`. Null where they cannot be read (no /proc,
   * no machine-id): then nothing can be proven about the process, and only its heartbeat decides.
   */
  readonly identity: string | null
}

export interface Processes {
  readonly own: ProcessMark & { readonly host: string }
  /** Whether a proof is possible: the process belongs to this machine and pid namespace. */
  isLocal(process: ProcessMark): boolean
  /**
   * True only on proof that a local process has ended: its pid does not exist, is a zombie, or belongs to a process with
   * another start time. False whenever something needed for the proof cannot be read. Its only I/O are two reads of /proc.
   */
  isGone(process: ProcessMark): boolean
  /** A debugger can be, or is, attached to this process. */
  isDebugged(): boolean
}

/** Calls of the operating system; each throws the system's error. */
export interface ProcessReader {
  readonly pid: number
  readonly host: string
  text(path: string): string
  link(path: string): string
  /** Sends signal 0, which only checks that the process exists. */
  probe(pid: number): void
}

const systemReader: ProcessReader = {
  pid: process.pid,
  host: hostname(),
  text: (path) => readFileSync(path, 'utf8'),
  link: (path) => readlinkSync(path),
  probe: (pid) => void process.kill(pid, 0),
}

export function systemProcesses(reader: ProcessReader = systemReader): Processes {
  const { pid, host } = reader
  const machine = readMachine(reader)
  const started = machine === undefined ? undefined : statOf(reader, pid)?.started
  const identity = machine === undefined || started === undefined ? null : `${machine}.${started}`
  const isLocal = (other: ProcessMark): boolean => identity !== null && machineOf(other.identity) === machine
  return {
    own: { host, pid, identity },
    isLocal,
    isDebugged: () => inspectorUrl() !== undefined,
    isGone(other) {
      if (!isLocal(other) || !Number.isSafeInteger(other.pid) || other.pid <= 0) return false
      if (isMissing(reader, other.pid)) return true
      // It exists, but may be hidden from this process (hidepid): then nothing is proven.
      const found = statOf(reader, other.pid)
      return found !== undefined && (found.isZombie || `${machine}.${found.started}` !== other.identity)
    },
  }
}

/**
 * The identity of this machine since its boot, as this process sees it. A pid means the same process only within one pid
 * namespace, and a start time only within one time namespace. Undefined when any part is missing, and when /proc shows the
 * processes of another namespace.
 */
function readMachine(reader: ProcessReader): string | undefined {
  try {
    if (reader.link('/proc/self') !== String(reader.pid)) return undefined
    const parts = [
      reader.text('/etc/machine-id').trim(),
      reader.text('/proc/sys/kernel/random/boot_id').trim(),
      reader.host,
      reader.link('/proc/self/ns/pid'),
    ]
    if (parts.some((part) => part === '')) return undefined
    return digest([...parts, timeNamespace(reader)].join('\n')).slice(0, IDENTITY_LENGTH)
  } catch {
    return undefined // Not Linux, or a container hides them.
  }
}

/** Kernels before 5.6 have no time namespaces: all processes share one. */
function timeNamespace(reader: ProcessReader): string {
  try {
    return reader.link('/proc/self/ns/time')
  } catch {
    return ''
  }
}

const machineOf = (identity: string | null): string | undefined => identity?.slice(0, identity.lastIndexOf('.'))

/** EPERM means that the process exists and belongs to another user. */
function isMissing(reader: ProcessReader, pid: number): boolean {
  try {
    reader.probe(pid)
    return false
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH'
  }
}

/** State and start time (clock ticks since boot). The name before them may contain any character, also brackets and spaces. */
function statOf(reader: ProcessReader, pid: number): { isZombie: boolean; started: string } | undefined {
  try {
    const text = reader.text(`/proc/${pid}/stat`)
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
    const [state, started] = [fields[0], fields[STARTED_FIELD]]
    if (state === undefined || started === undefined || !/^\d+$/.test(started)) return undefined
    return { isZombie: state === 'Z' || state === 'X', started }
  } catch {
    return undefined
  }
}

/** Hexadecimal digits of a digest that tell processes apart. */
const IDENTITY_LENGTH = 32

/** Field 22 of the file, counted from the state, which is field 3. */
const STARTED_FIELD = 19

/** Nothing can be proven about any process: only the heartbeat decides. */
export const UNKNOWN_PROCESSES: Processes = {
  own: { host: 'test', pid: 0, identity: null },
  isLocal: () => false,
  isGone: () => false,
  isDebugged: () => false,
}

import { readFileSync } from 'node:fs'

/** A clock that all processes of this machine share (CLOCK_MONOTONIC on Linux), in milliseconds. */
export function nowMs() {
  return Number(process.hrtime.bigint()) / 1e6
}

/** The CPU time of this process so far, with all its threads, in microseconds. */
export function cpuUs() {
  const { user, system } = process.cpuUsage()
  return user + system
}

/** Wall time, and the CPU time of the whole process with all its threads; and of a server with all its processes. */
export class Watch {
  #wall = nowMs()
  #cpu = process.cpuUsage()
  #serverPid
  #server

  /** @param {number} [serverPid] */
  constructor(serverPid) {
    this.#serverPid = serverPid
    this.#server = serverCpuUs(serverPid)
  }

  ms() {
    return nowMs() - this.#wall
  }

  stop() {
    const ms = this.ms()
    const { user, system } = process.cpuUsage(this.#cpu)
    const server = this.#server === undefined ? undefined : serverCpuUs(this.#serverPid)
    return { ms, cpuUs: user + system, ...(server === undefined ? {} : { serverUs: server - this.#server }) }
  }
}

/** The kernel counts in these, everywhere that Node runs. */
const TICK_US = 10_000

/**
 * What a process has used so far, with its children, also ended ones: in whole hundredths of a second. Undefined
 * where the kernel does not report it.
 * @param {number | undefined} pid
 */
function serverCpuUs(pid) {
  if (pid === undefined) return undefined
  try {
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean)
    const live = children.map((child) => ticksOf(child).slice(0, 2)).flat()
    return [...ticksOf(pid), ...live].reduce((sum, ticks) => sum + ticks, 0) * TICK_US
  } catch {
    return undefined // Not Linux, or a child that ended just now.
  }
}

/** Own user and system time, and that of ended children. The name before them may hold spaces. */
function ticksOf(pid) {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return fields.slice(11, 15).map(Number)
}

/**
 * The most memory this process ever had. From the kernel's own high-water mark where there is one: `maxRSS` begins with
 * what the parent had when it forked, which is not the child's.
 */
export function peakMiB() {
  try {
    const kib = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1]
    if (kib !== undefined) return Number(kib) / 1024
  } catch {
    // Not Linux: the next best figure is used.
  }
  return process.resourceUsage().maxRSS / 1024
}

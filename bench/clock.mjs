import { readFileSync } from 'node:fs'

/** A clock that all processes of this machine share (CLOCK_MONOTONIC on Linux), in milliseconds. */
export function nowMs() {
  return Number(process.hrtime.bigint()) / 1e6
}

/** Wall time, and the CPU time of the whole process with all its threads. */
export class Watch {
  #wall = nowMs()
  #cpu = process.cpuUsage()

  ms() {
    return nowMs() - this.#wall
  }

  stop() {
    const ms = this.ms()
    const { user, system } = process.cpuUsage(this.#cpu)
    return { ms, cpuUs: user + system }
  }
}

/**
 * The most memory this process ever had. From the kernel's own high-water mark where there is one: `maxRSS` begins with
 * what the parent had when it forked, and would blame the child for it.
 */
export function peakMiB() {
  try {
    const kib = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1]
    if (kib !== undefined) return Number(kib) / 1024
  } catch {
    // Not Linux: the next best figure serves.
  }
  return process.resourceUsage().maxRSS / 1024
}

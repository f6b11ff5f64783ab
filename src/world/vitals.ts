import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import type { IntervalHistogram } from 'node:perf_hooks'

/** What a worker reports about its process. A simulated world has none. */
export interface Vitals {
  /** Since the last call. The event loop is sampled from the first call on. */
  read(): { readonly memoryBytes: number; readonly loopDelayMs: number }
  /** The version in the package.json of the app; undefined when there is none. */
  readonly appVersion: () => string | undefined
}

/** How often the delay of the event loop is sampled. */
const SAMPLE_MS = 50

export function systemVitals(): Vitals {
  let delays: IntervalHistogram | undefined
  return {
    read() {
      const before = delays
      delays ??= monitorEventLoopDelay({ resolution: SAMPLE_MS })
      // The histogram measures from timer to timer, so the interval itself is in it.
      const delayMs = before === undefined || before.count === 0 ? 0 : before.percentile(99) / 1e6 - SAMPLE_MS
      if (before === undefined) delays.enable()
      else before.reset()
      return { memoryBytes: process.memoryUsage.rss(), loopDelayMs: Math.max(0, Math.round(delayMs)) }
    },
    appVersion: () => versionFrom(process.argv[1] === undefined ? process.cwd() : dirname(process.argv[1])),
  }
}

/** The version in the nearest package.json that has one, from this folder upwards. */
export function versionFrom(folder: string): string | undefined {
  for (let at = folder; ; at = dirname(at)) {
    const version = readVersion(join(at, 'package.json'))
    if (version !== undefined || at === dirname(at)) return version
  }
}

function readVersion(path: string): string | undefined {
  try {
    if (!existsSync(path)) return undefined
    const { version } = JSON.parse(readFileSync(path, 'utf8')) as { readonly version?: unknown }
    return typeof version === 'string' && version !== '' ? version.slice(0, VERSION_MAX) : undefined
  } catch {
    // A file that cannot be read or parsed names no version.
    return undefined
  }
}
const VERSION_MAX = 200

import type { WorkerRow } from '../../../protocol.js'
import { duration, seconds } from '../../format/duration.js'
import { UNKNOWN, bytes, count, rate } from '../../format/number.js'
import { listed } from '../../format/text.js'
import type { MarkName } from '../../parts/state.js'

/** A worker as its row shows it. */
export interface WorkerLine {
  readonly id: string
  readonly place: string
  readonly mark: MarkName
  readonly word: string
  readonly version: string
  readonly up: string
  readonly busy: number
  readonly slots: number | null
  readonly slotsText: string
  readonly running: string
  readonly perMinute: string
  readonly loop: string
  readonly memory: string
  readonly beat: string
  readonly names: string
  readonly runningNow: readonly {
    readonly key: string
    readonly job: string
    readonly count: number
    readonly since: number
  }[]
  readonly isDead: boolean
}

const WORDS: Readonly<Record<WorkerRow['state'], readonly [MarkName, string]>> = {
  alive: ['done', 'alive'],
  silent: ['warn', 'silent'],
  dead: ['lost', 'dead'],
}

export function workerLine(row: WorkerRow, now: number): WorkerLine {
  const [mark, word] = WORDS[row.state]
  const running = row.running.map(({ job, count: n }) => (n === 1 ? job : `${job} ×${count(n)}`))
  const oldest = Math.min(...row.running.map(({ since }) => since))
  return {
    id: row.id.slice(0, 8),
    place: `${row.host} · ${row.pid}`,
    mark,
    word,
    version: row.version ?? UNKNOWN,
    up: seconds((row.diedAt ?? now) - row.startedAt),
    busy: row.busy,
    slots: row.slots,
    slotsText: row.slots === null ? count(row.busy) : `${count(row.busy)}/${count(row.slots)}`,
    running: running.length === 0 ? 'nothing' : `${running.join(', ')} (oldest ${seconds(Math.max(0, now - oldest))})`,
    perMinute: rate(row.donePerMinute ?? undefined),
    loop: row.loopDelayMs === null ? UNKNOWN : duration(row.loopDelayMs),
    memory: bytes(row.memoryBytes ?? undefined),
    beat: seconds(Math.max(0, now - row.beatAt)),
    names: row.names === null ? '' : listed(row.names),
    runningNow: row.running.map((each) => ({
      key: `${each.queue} ${each.job}`,
      job: each.job,
      count: each.count,
      since: each.since,
    })),
    isDead: row.state === 'dead',
  }
}

import type { QueueFields, QueueRow } from '../../../protocol.js'
import { duration } from '../../format/duration.js'
import { bounded, count } from '../../format/number.js'
import type { Zone } from '../../format/time.js'
import { queueLine } from '../queues/computed.js'

export interface Fact {
  readonly name: string
  readonly value: string
  readonly href?: string
}

/** The numbers of a queue in one line. */
export function facts(queue: QueueRow, now: number, zone: Zone): Fact[] {
  const line = queueLine(queue, now, zone)
  const { rate, limit } = queue
  return [
    { name: 'waiting', value: bounded(queue.waiting.n, queue.waiting.exact), href: line.waitingHref },
    { name: 'oldest', value: line.oldest },
    { name: 'running', value: line.runningText, href: line.runningHref },
    { name: 'done per minute', value: line.perMinute },
    { name: 'failed', value: count(queue.failed.n), href: line.failedHref },
    { name: 'wait p95', value: line.waitP95 },
    { name: 'empty in', value: line.emptyIn },
    ...(limit === null ? [] : [{ name: 'limit', value: `${count(limit)} at once` }]),
    ...(rate === null ? [] : [{ name: 'rate', value: `${count(rate.max)} per ${duration(rate.perMs)}` }]),
  ]
}

const MINUTE = 60_000
/** When a working day begins: a pause until tomorrow ends then. */
const MORNING_HOUR = 8

export interface PauseChoice {
  readonly label: string
  readonly until: number
}

/** 15 minutes, an hour, tomorrow morning by the viewer's clock. */
export function pauseChoices(now: number): PauseChoice[] {
  const tomorrow = new Date(now)
  tomorrow.setDate(tomorrow.getDate() + 1)
  tomorrow.setHours(MORNING_HOUR, 0, 0, 0)
  return [
    { label: 'Pause for 15 minutes', until: now + 15 * MINUTE },
    { label: 'Pause for an hour', until: now + 60 * MINUTE },
    { label: 'Pause until tomorrow 08:00', until: tomorrow.getTime() },
  ]
}

/** The longest bar of the jobs by name. */
export function mostRunning({ byJob }: Pick<QueueFields, 'byJob'>): number {
  return Math.max(1, ...byJob.map(({ running }) => running))
}

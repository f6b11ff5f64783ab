import type { LiveQueue } from '../../../client/commands/queues.js'
import type { Finding } from '../../../observe/health/findings.js'
import type { HealthReport } from '../../../observe/health/health.js'
import { inWords } from '../../../job/why/words.js'
import type { Sentence, Verdict } from '../../protocol/rows.js'
import type { Parts } from '../parts.js'
import { healthOf, link, lastHourOf, queuesOf } from './reads.js'

/** Findings that stop work now. */
const BAD: readonly Finding['kind'][] = ['store', 'no-worker', 'failing-jobs', 'unknown-name']
/** The order in which problems are named. */
const RANK: readonly Finding['kind'][] = [
  'store',
  'no-worker',
  'blocked-loop',
  'silent-worker',
  'failing-jobs',
  'unknown-name',
]
const IDS = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g
const NAMED_MAX = 2
const MINUTES = 60

export function levelOf(kind: Finding['kind']): 'bad' | 'warn' {
  return BAD.includes(kind) ? 'bad' : 'warn'
}

export function linkOf({ kind, text }: Finding): string | null {
  const job = /(?:^|\W)([0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12})/.exec(text)?.[1]
  if (job !== undefined) return link('job', job)
  if (kind === 'failing-jobs') return '#/failures'
  return /worker|loop|handler|name/.test(kind) ? '#/workers' : '#/health'
}

/** The one sentence at the top of every page. */
export async function verdictOf(parts: Parts): Promise<Verdict> {
  const [report, queues, hour] = await Promise.all([healthOf(parts), queuesOf(parts), lastHourOf(parts)])
  return verdict(report, queues, hour.rows, parts.world.clock.now())
}

function verdict(
  { findings, healthy }: HealthReport,
  queues: readonly LiveQueue[],
  ended: readonly { readonly done: number; readonly failed: number }[],
  now: number,
): Verdict {
  const ranked = findings.toSorted((a, b) => rank(a.kind) - rank(b.kind))
  const held = queues.flatMap((queue) => heldSentence(queue))
  const problems = [
    ...ranked.map((finding) => ({ text: withShortIds(finding.text), to: linkOf(finding) ?? '#/health' })),
    ...held,
  ]
  if (problems.length === 0)
    return { kind: healthy === null ? 'unknown' : 'good', problems: 0, text: [goodText(queues, ended, now)] }
  const isBad = healthy === false || findings.some(({ kind }) => levelOf(kind) === 'bad')
  const text: Sentence = [
    problems.length === 1 ? '1 problem. ' : `${problems.length} problems. `,
    ...problems.slice(0, NAMED_MAX).flatMap((problem) => [problem, ' ']),
  ]
  return { kind: isBad ? 'bad' : 'warn', problems: problems.length, text }
}

/** An id of 36 characters takes the place of a sentence; the link has all of it. */
const withShortIds = (text: string): string => text.replaceAll(IDS, (id) => `${id.slice(0, 8)}…${id.slice(-3)}`)

const rank = (kind: Finding['kind']): number => (RANK.includes(kind) ? RANK.indexOf(kind) : RANK.length)

function heldSentence({
  name,
  paused,
  pausedUntil,
  outages,
  counts,
}: LiveQueue): { readonly text: string; readonly to: string }[] {
  const to = link('queues', name)
  const holding = outages.filter(({ waiting }) => waiting > 0)
  if (holding.length > 0) {
    const held = holding.map(({ job, waiting }) => `${job} (${waiting} held)`)
    return [{ text: `Queue ${name} is probing ${held.join(', ')}.`, to }]
  }
  // A queue that is paused and empty holds nothing.
  if (!paused || counts.ready === 0) return []
  const until = pausedUntil === undefined ? '' : ` until ${pausedUntil.toISOString()}`
  return [{ text: `Queue ${name} is paused${until}: ${counts.ready} jobs wait.`, to }]
}

function goodText(
  queues: readonly LiveQueue[],
  ended: readonly { readonly done: number; readonly failed: number }[],
  now: number,
): string {
  const perMinute = ended.reduce((sum, { done, failed }) => sum + done + failed, 0) / MINUTES
  const due = queues.flatMap(({ oldestDueAt }) => oldestDueAt ?? []).map((at) => at.getTime())
  const wait =
    due.length === 0 ? 'nothing waits' : `no job waits longer than ${inWords(Math.max(0, now - Math.min(...due)))}`
  return `No problems: ${Math.round(perMinute * 10) / 10} jobs/min in the last hour, ${wait}.`
}

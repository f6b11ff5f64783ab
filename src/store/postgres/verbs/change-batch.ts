import type { FinalState, State } from '../../../job/rules/states.js'
import { isFinal } from '../../../job/rules/states.js'
import { readOptions } from '../../../job/definition/stored-options.js'
import type { Changed, GuardedChange } from '../../store.js'
import { endOf, isTurn, turnAll } from './change.js'
import type { Turn } from './change.js'
import { countMoves } from './groups.js'
import { endAll, takeAllOut } from './moves.js'
import { readManyById } from './read.js'
import type { Standing } from './rows.js'
import type { Session } from '../connection/session.js'

/*
 * Commands that are given at the same time, such as to all members of a group, share a transaction: a handful of statements and
 * one flush for hundreds of jobs.
 */

/** So many at a time: others wait for the connection meanwhile. */
export const TOGETHER_MAX = 500

/** What it does to a job hangs on nobody else. */
export function mayShare({ from, to, edit, due }: GuardedChange): boolean {
  return to !== 'gone' && edit === undefined && (due === undefined || isFinal(from))
}

/**
 * Does those of many commands that nobody stands in the way of. Undefined: not this one, which is to be done by itself. Nothing
 * is waited for. Within a transaction.
 */
export async function changeTogether(
  s: Session,
  changes: readonly GuardedChange[],
): Promise<readonly (Changed | undefined)[]> {
  const now = await s.now()
  const seen = await readManyById(
    s,
    changes.map((change) => change.id),
  )
  const turns = new Map<string, Turn>()
  for (const change of changes) {
    const job = seen.get(change.id)
    if (job !== undefined && !turns.has(job.id) && isEasy(job, change))
      turns.set(job.id, { job, change, to: change.to as State })
  }
  const wanted = [...turns.values()].map((turn) => turn.job)
  const mine = (await takeAllOut(s, wanted, 'skip')).map((job) => turns.get(job.id) as Turn)
  const ends = mine.filter(({ to }) => isFinal(to))
  await endAll(
    s,
    ends.map(({ job, change, to }) => endOf(job, change, to as FinalState)),
  )
  await turnAll(
    s,
    mine.filter(({ to }) => !isFinal(to)),
    now,
  )
  await countMoves(s)
  const done = new Set(mine.map(({ change }) => change))
  return changes.map((change) => (done.has(change) ? 'changed' : undefined))
}

/** As the decision saw it, in nobody's hand, and with no key or place to take anew. */
function isEasy(job: Standing, { from, to }: GuardedChange): boolean {
  if (job.state !== from || job.claimed || to === 'gone') return false
  if (isFinal(from)) return job.key === null && readOptions(job.options).unique === undefined
  return isFinal(to) || isTurn(from, to)
}

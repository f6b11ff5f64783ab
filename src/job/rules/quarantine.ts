/**
 * The crash rule, pure ([decision](../../docs/decisions/quarantine.md)).
 *
 * A crash does not say which job caused it, so it is charged to none: the jobs in flight run again at once, side by side. Each
 * counts the crashes in a row that it was in flight at (its streak). From the second on it is a suspect and runs in
 * quarantine: nothing else runs in that process for a while, which doubles with the streak. Only a crash in a quarantine of
 * one suspect is charged.
 */

/** The streak from which on a job is a suspect. Both stores' statements and indexes say this number too. */
export const SUSPECT_STREAK = 2
/** Up to so many suspects of one streak are quarantined one at a time; more are quarantined by halves. */
export const SINGLY_MAX = 8
/** The length of the first quarantine. */
export const QUARANTINE_MS = 60_000
/** The length doubles this often at the most: a month. */
const DOUBLINGS_MAX = 15

export function isSuspect(streak: number): boolean {
  return streak >= SUSPECT_STREAK
}

/** How long nothing else runs beside a suspect, unless it ends before. */
export function quarantineMs(streak: number, firstMs: number): number {
  return firstMs * 2 ** Math.min(Math.max(0, streak - SUSPECT_STREAK), DOUBLINGS_MAX)
}

/**
 * How long a worker that has just started gives to other work before it quarantines a suspect of this streak: as long as the
 * quarantine before this one may have lasted, which ended with a crash, perhaps of this very process. A job that was never in
 * quarantine is owed nothing.
 */
export function otherWorkFirstMs(streak: number, firstMs: number): number {
  return streak <= SUSPECT_STREAK ? 0 : quarantineMs(streak - 1, firstMs)
}

/**
 * The streak after a crash. A job that was held in advance and not reported as begun may still have begun a moment before the
 * crash. It counts as one crash at the most and so never becomes a suspect that way; from then on its worker reports it
 * before it begins, and the next crash knows.
 */
export function streakAfterCrash(streak: number, hasBegun: boolean): number {
  return hasBegun ? streak + 1 : Math.max(streak, 1)
}

export interface WaitingSuspect {
  readonly ref: number
  readonly queue: string
  readonly streak: number
}

/**
 * Which of the waiting suspects, in the order of the line, go into the next quarantine: of those with the shortest streak one,
 * or half of them when they are more than 8. All that were in a quarantine that ended with a crash have the same streak,
 * so the next takes half of those.
 */
export function chooseSuspects<Suspect extends WaitingSuspect>(
  waiting: readonly Suspect[],
  max: number,
  rooms: ReadonlyMap<string, number>,
): readonly Suspect[] {
  const streak = Math.min(...waiting.map((each) => each.streak))
  const alike = waiting.filter((each) => each.streak === streak)
  const most = Math.min(max, alike.length <= SINGLY_MAX ? 1 : Math.ceil(alike.length / 2))
  const left = new Map(rooms)
  const chosen: Suspect[] = []
  for (const each of alike) {
    const room = left.get(each.queue)
    if (chosen.length === most || room === 0) continue
    if (room !== undefined) left.set(each.queue, room - 1)
    chosen.push(each)
  }
  return chosen
}

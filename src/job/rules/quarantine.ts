/**
 * The crash rule, pure ([decision](../../docs/decisions/quarantine.md)).
 *
 * A crash does not show which job caused it, so it is charged to none: the jobs in flight run again at once, side by side. Each
 * counts the consecutive crashes at which it was in flight (its streak). From the second on it is a suspect and runs in
 * quarantine: nothing else runs in that process for a time that doubles with the streak. Only a crash in a quarantine of one
 * suspect is charged.
 */

/** A job with this streak or a longer one is a suspect. The statements and indexes of both stores repeat this number. */
export const SUSPECT_STREAK = 2
/** Up to this many suspects of one streak are quarantined one at a time; of more, half are quarantined together. */
export const ONE_BY_ONE_MAX = 8
/** The length of the first quarantine. */
export const QUARANTINE_MS = 60_000
/** The length doubles at most this often: up to about a month. */
const DOUBLINGS_MAX = 15

export function isSuspect(streak: number): boolean {
  return streak >= SUSPECT_STREAK
}

/** Whether it has counted crashes: an answer or an item that it records ends their count. */
export function hasCrashed({ streak, crashes }: { readonly streak: number; readonly crashes: number }): boolean {
  return streak > 0 || crashes > 0
}

/** How long nothing else runs beside a suspect, unless it ends earlier. */
export function quarantineMs(streak: number, firstMs: number): number {
  return firstMs * 2 ** Math.min(Math.max(0, streak - SUSPECT_STREAK), DOUBLINGS_MAX)
}

/**
 * How long a worker that has just started runs other jobs before it quarantines a suspect of this streak: as long as the previous
 * quarantine may have lasted. That one ended with a crash, perhaps of this process, and other jobs waited meanwhile. The first
 * quarantine of a job begins at once.
 */
export function otherWorkFirstMs(streak: number, firstMs: number): number {
  return streak <= SUSPECT_STREAK ? 0 : quarantineMs(streak - 1, firstMs)
}

/**
 * The streak after a crash. A job that was held in advance and not reported as begun may have begun just before the crash. Such a
 * crash raises its streak to 1 at most, so it never becomes a suspect by it. With a streak of 1 its worker reports it before it
 * begins, and the next crash counts.
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
 * Which of the waiting suspects, in due order, enter the next quarantine: of those with the shortest streak the first, or half of
 * them when there are more than 8. Suspects of one quarantine that crashed have the same streak, so the next quarantine takes half
 * of them.
 */
export function chooseSuspects<Suspect extends WaitingSuspect>(
  waiting: readonly Suspect[],
  max: number,
  rooms: ReadonlyMap<string, number>,
): readonly Suspect[] {
  const streak = Math.min(...waiting.map((each) => each.streak))
  const alike = waiting.filter((each) => each.streak === streak)
  const most = Math.min(max, alike.length <= ONE_BY_ONE_MAX ? 1 : Math.ceil(alike.length / 2))
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

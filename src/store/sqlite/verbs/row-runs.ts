/**
 * Runs of consecutive rows. Jobs that were enqueued together are usually claimed and settled together, and `between`
 * scans them as one range, where a list is looked up row by row.
 */
export interface RowRuns<Item> {
  /** Runs of consecutive rows that belong together, in order. */
  readonly runs: readonly (readonly Item[])[]
  /** Rows outside of any run, or in a run that is too short. */
  readonly rest: readonly Item[]
}

/** A shorter run gains nothing over a list. */
const RUN_MIN = 4

export function rowRunsOf<Item>(
  items: readonly Item[],
  refOf: (item: Item) => number,
  belongs: (before: Item, item: Item) => boolean,
): RowRuns<Item> {
  const runs: Item[][] = []
  const rest: Item[] = []
  let from = 0
  for (let i = 1; i <= items.length; i += 1) {
    const before = items[i - 1] as Item
    const item = items[i]
    if (item !== undefined && refOf(item) === refOf(before) + 1 && belongs(before, item)) continue
    if (i - from >= RUN_MIN) runs.push(items.slice(from, i))
    else for (let k = from; k < i; k += 1) rest.push(items[k] as Item)
    from = i
  }
  return { runs, rest }
}

import { show } from '../codec/show.js'
import { InvalidOptionsError } from '../errors.js'
import type { Taken } from '../job/capture.js'
import type { EnqueueOptions } from '../job/enqueue.js'
import type { Registered } from '../job/registry.js'
import type { OnDuplicate } from '../job/unique.js'
import type { NewJob } from '../store/store.js'
import { prepare, refuse } from './prepare.js'
import type { Wrong } from './prepare.js'

/** Bad items of a bulk that one error names. */
const WRONG_MAX = 20

export interface BulkRow {
  readonly row: NewJob
  readonly onDuplicate: OnDuplicate
}

/** The rows of a bulk. Every item is looked at before one is refused, so that one error names all of them. */
export async function prepareMany(
  registered: Registered,
  payloads: readonly unknown[],
  options: EnqueueOptions | ((payload: never, index: number) => EnqueueOptions) | undefined,
  newId: () => string,
  taken?: Taken,
): Promise<BulkRow[]> {
  const rows: BulkRow[] = []
  const wrongs: Wrong[] = []
  for (const [index, payload] of payloads.entries()) {
    const own = typeof options === 'function' ? options(payload as never, index) : options
    // Taken once for the whole bulk, and told once when it is wrong.
    const problems = index === 0 ? taken?.problems : undefined
    const making = prepare({ registered, payload, options: own, index, captured: taken?.captured, problems }, newId())
    const made = making instanceof Promise ? await making : making
    if ('row' in made) rows.push({ row: made.row, onDuplicate: own?.onDuplicate ?? 'return' })
    else wrongs.push(made.wrong)
    if (wrongs.length >= WRONG_MAX) break
  }
  if (wrongs.length > 0) refuse(registered.job.name, wrongs)
  return rows
}

/** What to do about held keys, which one insert answers in one way. */
export function onePolicy(rows: readonly BulkRow[]): OnDuplicate {
  const keyed = rows.flatMap(({ row, onDuplicate }, index) => (row.key === null ? [] : [{ onDuplicate, index }]))
  const [first] = keyed
  const other = keyed.find((each) => each.onDuplicate !== first?.onDuplicate)
  if (first === undefined) return 'return'
  if (other === undefined) return first.onDuplicate
  const message = `must be the same for all, got ${show(other.onDuplicate)} after ${show(first.onDuplicate)}`
  throw new InvalidOptionsError('enqueueMany()', [{ path: `options[${other.index}].onDuplicate`, message }])
}

import { joinPath } from '../../codec/path.js'
import { reason } from '../../codec/show.js'
import { InvalidOptionsError } from '../../errors.js'
import type { Problem } from '../../errors.js'
import { isJob } from '../../job/definition/brands.js'
import { isAfter } from '../../job/definition/check-after.js'
import type { After, EnqueueOptions } from '../../job/enqueue.js'
import type { Registered } from '../../job/definition/registry.js'
import type { NewJob } from '../../store/store.js'
import type { Parent } from '../../store/links.js'

/** Links that one call may write. */
export const LINKS_MAX = 1_000_000

/** What an item says of the jobs it comes after, as its row has it. */
export type RowLinks = Pick<NewJob, 'after' | 'onParentFailure' | 'keepCancelledMs'>

const NO_LINKS: RowLinks = { after: undefined, onParentFailure: undefined, keepCancelledMs: undefined }

export type LinksResult =
  | { readonly ok: true; readonly links: RowLinks }
  | { readonly ok: false; readonly problem: Problem; readonly cause?: unknown }

/** The parents of one job: of its flow, of its options, else of its definition. `path` is where its payload stands. */
export function linksOf(
  registered: Registered,
  options: EnqueueOptions,
  payload: unknown,
  beside: readonly Parent[],
  path: string,
): LinksResult {
  const named = options.after ?? registered.job.options.after
  if (named === undefined && beside.length === 0) return { ok: true, links: NO_LINKS }
  const asked = typeof named === 'function' ? callAfter(named as (payload: unknown) => unknown, payload, path) : named
  if (asked !== undefined && 'problem' in asked) return { ok: false, ...asked }
  const after = [...toParents(asked ?? []), ...beside]
  if (after.length === 0) return { ok: true, links: NO_LINKS }
  const onParentFailure = options.onParentFailure ?? registered.onParentFailure
  return { ok: true, links: { after, onParentFailure, keepCancelledMs: registered.keepMs.cancelled } }
}

/** Asks the function of a definition; what it throws or gives wrong is said of the payload it was asked about. */
function callAfter(
  named: (payload: unknown) => unknown,
  payload: unknown,
  path: string,
): readonly After[] | { readonly problem: Problem; readonly cause?: unknown } {
  try {
    const after = named(payload)
    const wrong = isAfter(after)
    if (wrong === undefined || wrong.length === 0) return after as readonly After[]
    const said =
      typeof wrong === 'string'
        ? `after() ${wrong}`
        : wrong.map((p) => `${joinPath('after()', p.path)} ${p.message}`).join('; ')
    return { problem: { path, message: `does not say what to come after: the job’s ${said}` } }
  } catch (error) {
    const message = `does not say what to come after: the job’s after() threw ${reason(error)}`
    return { problem: { path, message }, cause: error }
  }
}

export function toParents(after: readonly After[]): Parent[] {
  return after.map((one) => {
    if (typeof one === 'string') return { id: one }
    if ('id' in one) return { id: one.id }
    const [job, key] = one
    return { name: isJob(job) ? job.name : job, key }
  })
}

/** A call that would write more links than one transaction should. */
export function refuseTooManyLinks(rows: readonly NewJob[], verb: string): void {
  let links = 0
  for (const { after } of rows) links += after?.length ?? 0
  if (links <= LINKS_MAX) return
  const message = `must be at most ${LINKS_MAX} in one call, all jobs together, got ${links}; put a job in between that comes after all of them`
  throw new InvalidOptionsError(verb, [{ path: 'after', message }])
}

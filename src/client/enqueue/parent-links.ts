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

/** The most links that one call may write. */
export const LINKS_MAX = 1_000_000

/** The columns of a job's row that describe its parents. */
export type RowLinks = Pick<NewJob, 'after' | 'onParentFailure' | 'keepCancelledMs'>

const NO_LINKS: RowLinks = { after: undefined, onParentFailure: undefined, keepCancelledMs: undefined }

export type LinksResult =
  | { readonly ok: true; readonly links: RowLinks }
  | { readonly ok: false; readonly problem: Problem; readonly cause?: unknown }

/**
 * The parents of one job: those added in its flow, and those of its options or else of its definition. `path` is the payload's
 * path in error messages.
 */
export function linksOf(
  registered: Registered,
  options: EnqueueOptions,
  payload: unknown,
  flowParents: readonly Parent[],
  path: string,
): LinksResult {
  const declared = options.after ?? registered.job.options.after
  if (declared === undefined && flowParents.length === 0) return { ok: true, links: NO_LINKS }
  const listed =
    typeof declared === 'function' ? callAfter(declared as (payload: unknown) => unknown, payload, path) : declared
  if (listed !== undefined && 'problem' in listed) return { ok: false, ...listed }
  const after = [...toParents(listed ?? []), ...flowParents]
  if (after.length === 0) return { ok: true, links: NO_LINKS }
  const onParentFailure = options.onParentFailure ?? registered.onParentFailure
  return { ok: true, links: { after, onParentFailure, keepCancelledMs: registered.keepMs.cancelled } }
}

/** Calls the `after` function of a definition. What it throws, or a wrong return value, is reported as a problem of the payload. */
function callAfter(
  after: (payload: unknown) => unknown,
  payload: unknown,
  path: string,
): readonly After[] | { readonly problem: Problem; readonly cause?: unknown } {
  try {
    const parents = after(payload)
    const wrong = isAfter(parents)
    if (wrong === undefined || wrong.length === 0) return parents as readonly After[]
    const complaint =
      typeof wrong === 'string'
        ? `after() ${wrong}`
        : wrong.map((p) => `${joinPath('after()', p.path)} ${p.message}`).join('; ')
    return { problem: { path, message: `made after() of the job fail: ${complaint}` } }
  } catch (error) {
    const message = `made after() of the job fail: after() threw ${reason(error)}`
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

/** Refuses a call that would write more links than one transaction should hold. */
export function refuseTooManyLinks(rows: readonly NewJob[], verb: string): void {
  let links = 0
  for (const { after } of rows) links += after?.length ?? 0
  if (links <= LINKS_MAX) return
  const message = `must be at most ${LINKS_MAX} in one call, all jobs together, got ${links}; put a job in between that comes after all of them`
  throw new InvalidOptionsError(verb, [{ path: 'after', message }])
}

import { turnOf } from '../../job/definition/limit-options.js'
import type { JobTurn } from '../../job/limits/turns.js'
import type { Codec } from '../../codec/codec.js'
import { givenOf } from '../../codec/options-object.js'
import { InvalidOptionsError, InvalidPayloadError } from '../../errors.js'
import { TITLE_MAX } from '../../job/definition/check-options.js'
import type { EnqueueOptions } from '../../job/enqueue.js'
import type { Registered } from '../../job/definition/registry.js'
import { versionOf } from '../enqueue/prepare.js'
import { timeoutMs } from '../../job/definition/registry.js'
import { isSequence, readOptions, writeOptions } from '../../job/definition/stored-options.js'
import type { StoredOptions } from '../../job/definition/stored-options.js'
import { fillTitle } from '../../job/definition/title.js'
import type { JobRow } from '../../store/store.js'
import { metaProblem, writeMeta } from '../enqueue/meta.js'

/** The fields of a waiting or parked job that `mill.edit` can change. */
export interface JobEdit extends Pick<
  EnqueueOptions,
  'title' | 'labels' | 'queue' | 'priority' | 'in' | 'at' | 'retry' | 'timeout' | 'meta' | 'after' | 'onParentFailure'
> {
  readonly payload?: unknown
}

/** The stored options with the change merged into them. `payload` fills the `{field}` placeholders of a new title. */
export function editedOptions(
  stored: string | null,
  change: JobEdit,
  /** Without the versions of a definition, an edited payload is taken as one of the stored version. */
  { codec, upcast }: Pick<Registered, 'codec'> & Partial<Pick<Registered, 'upcast'>>,
  payload: unknown,
): string | null {
  const before = readOptions(stored)
  const changed: StoredOptions = {
    ...(change.payload === undefined || upcast === undefined ? {} : { version: versionOf({ upcast }) }),
    ...(change.title === undefined ? {} : { title: fillTitle(change.title, payload).slice(0, TITLE_MAX) }),
    ...(change.labels === undefined ? {} : { labels: change.labels }),
    ...(change.retry === undefined ? {} : { retry: { ...before.retry, ...givenOf(change.retry) } }),
    ...(change.timeout === undefined
      ? {}
      : { timeout: change.timeout === Infinity ? null : timeoutMs(change.timeout, Infinity) }),
    ...(change.meta === undefined ? {} : { meta: editedMeta(codec, change.meta) }),
  }
  return writeOptions({ ...before, ...changed })
}

function editedMeta(codec: Codec, meta: unknown): NonNullable<StoredOptions['meta']> {
  try {
    return writeMeta({ codec }, meta)
  } catch (error) {
    throw new InvalidOptionsError('edit()', [metaProblem(error, 'meta')])
  }
}

/** What the limits of its job make of a new payload; undefined keeps what is stored. */
export function editedTurn(registered: Registered | undefined, name: string, payload: unknown): JobTurn | undefined {
  if (registered === undefined) return undefined
  const answer = turnOf(registered.limit, registered.rate, payload, 'payload')
  if (answer.ok) return answer.turn
  throw new InvalidPayloadError(`job ${JSON.stringify(name)}`, [answer.problem], { cause: answer.cause })
}

const SEQUENCE_FIELDS: ReadonlySet<string> = new Set(['priority', 'queue', 'labels'])

/** A sequence has items and no payload, and its items have their own times: only its place and labels can be changed. */
export function refuseForSequence(row: Pick<JobRow, 'id' | 'options'>, change: JobEdit): void {
  if (!isSequence(row.options)) return
  const wrong = Object.entries(change).filter(([name, value]) => value !== undefined && !SEQUENCE_FIELDS.has(name))
  if (wrong.length > 0)
    throw new InvalidOptionsError(
      `edit(${JSON.stringify(row.id)})`,
      wrong.map(([path]) => ({ path, message: 'cannot be edited of a sequence; only priority, queue and labels can' })),
    )
}

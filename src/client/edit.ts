import type { Codec } from '../codec/codec.js'
import type { EnqueueOptions } from '../job/enqueue.js'
import { timeoutMs } from '../job/registry.js'
import { readOptions, writeOptions } from '../job/stored-options.js'
import type { StoredOptions } from '../job/stored-options.js'

/** What may be changed of a job that waits or is parked. */
export interface JobEdit extends Pick<
  EnqueueOptions,
  'title' | 'labels' | 'queue' | 'priority' | 'in' | 'at' | 'retry' | 'timeout' | 'meta'
> {
  readonly payload?: unknown
}

/** The stored options with the change laid over them. */
export function editedOptions(stored: string | null, change: JobEdit, codec: Codec): string | null {
  const before = readOptions(stored)
  const given: StoredOptions = {
    ...(change.title === undefined ? {} : { title: change.title }),
    ...(change.labels === undefined ? {} : { labels: change.labels }),
    ...(change.retry === undefined ? {} : { retry: { ...before.retry, ...change.retry } }),
    ...(change.timeout === undefined
      ? {}
      : { timeout: change.timeout === Infinity ? null : timeoutMs(change.timeout, Infinity) }),
    ...(change.meta === undefined ? {} : { meta: writeMeta(codec, change.meta) }),
  }
  return writeOptions({ ...before, ...given })
}

function writeMeta(codec: Codec, meta: unknown): NonNullable<StoredOptions['meta']> {
  const written = codec.encode(meta)
  return typeof written === 'string' ? { text: written } : { base64: Buffer.from(written).toString('base64') }
}

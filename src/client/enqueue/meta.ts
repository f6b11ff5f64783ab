import type { Codec } from '../../codec/codec.js'
import { codecError, problemOf } from '../../codec/path.js'
import { reason } from '../../codec/show.js'
import { CodecError } from '../../errors.js'
import type { Problem } from '../../errors.js'
import { toStoredValue } from '../../job/definition/stored-options.js'
import type { StoredValue } from '../../job/definition/stored-options.js'

/** What a job's `meta` may take as it is stored: it is read with every look at the job. */
const META_MAX_BYTES = 64 * 1024

/** Written by the job's codec, so that it may hold what payloads may. */
export function writeMeta({ codec }: { readonly codec: Codec }, meta: unknown): StoredValue {
  const written = toStoredValue(codec, meta)
  const bytes = Buffer.byteLength('text' in written ? written.text : written.base64)
  if (bytes <= META_MAX_BYTES) return written
  throw codecError('', `has ${bytes} bytes and the limit is ${META_MAX_BYTES}; keep a reference to the data instead`)
}

export function metaProblem(error: unknown, path: string): Problem {
  return error instanceof CodecError
    ? problemOf(error, path)
    : { path, message: `could not be written: ${reason(error)}` }
}

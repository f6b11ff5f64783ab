import type { Codec } from '../../codec/codec.js'
import { codecError, problemOf } from '../../codec/path.js'
import { reason } from '../../codec/show.js'
import { CodecError } from '../../errors.js'
import type { Problem } from '../../errors.js'
import { toStoredValue } from '../../job/definition/stored-options.js'
import type { StoredValue } from '../../job/definition/stored-options.js'

/** The most bytes of a stored `meta`. It is read with every record of the job. */
const META_MAX_BYTES = 64 * 1024

/** Encodes `meta` with the job's codec, so that it may hold every value that a payload may. */
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

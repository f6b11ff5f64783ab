/** What `{"n":100000,"p":""}` takes. */
const FRAME_BYTES = 19

/**
 * A payload that is `bytes` long as JSON, and different for each job.
 * @param {number} bytes 20 or more
 * @param {number} index
 */
export function payloadOf(bytes, index) {
  return { n: 100_000 + (index % 900_000), p: 'x'.repeat(bytes - FRAME_BYTES) }
}

/** @param {number} bytes @param {number} count @param {number} [from] */
export function payloadsOf(bytes, count, from = 0) {
  return Array.from({ length: count }, (_, i) => payloadOf(bytes, from + i))
}

/** `20 B`, `4 KiB`. */
export function showBytes(bytes) {
  return bytes < 1024 ? `${bytes} B` : `${bytes / 1024} KiB`
}

/** Small ones show what a job costs, large ones what its bytes cost. */
export const SMALL = 20
export const LARGE = 4096

/** Jobs in one statement of a bulk, where the caller chooses. */
const PART = 1_000

/** @param {readonly object[]} payloads @param {(part: readonly object[]) => Promise<unknown>} add */
export async function addInParts(payloads, add) {
  for (let from = 0; from < payloads.length; from += PART) await add(payloads.slice(from, from + PART))
}

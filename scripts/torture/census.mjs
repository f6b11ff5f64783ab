/**
 * The census: every job that was acknowledged or is in the store is in exactly one bucket. Pure, so that a test can pass it
 * a ledger with one id too many and check the result.
 */
export const BUCKETS = [
  'acknowledged, done once',
  'acknowledged, done after extra runs',
  'still waiting or running',
  'failed or cancelled',
  'parked',
  'unacknowledged but present',
  'LOST',
  'IN TWO PLACES',
]

/**
 * @typedef {{ id: string, hasBody: number, live: string | null, history: string | null }} Place
 * @param {{ acknowledged: ReadonlySet<string>, places: readonly Place[], starts: ReadonlyMap<string, number> }} seen
 */
export function takeCensus({ acknowledged, places, starts }) {
  /** @type {Map<string, string[]>} */
  const buckets = new Map(BUCKETS.map((name) => [name, []]))
  const put = (name, id) => buckets.get(name)?.push(id)
  const present = new Set()
  for (const place of places) {
    present.add(place.id)
    put(bucketOf(place, acknowledged.has(place.id), starts.get(place.id) ?? 0), place.id)
  }
  for (const id of acknowledged) if (!present.has(id)) put('LOST', id)
  return {
    buckets,
    total: [...buckets.values()].reduce((sum, ids) => sum + ids.length, 0),
    of: (name) => buckets.get(name) ?? [],
  }
}

function bucketOf(place, isAcknowledged, starts) {
  if (place.live !== null && place.history !== null) return 'IN TWO PLACES'
  // A body that is in neither table is found by no query, and a row without its body cannot run: both are lost.
  if ((place.live === null && place.history === null) || !place.hasBody) return 'LOST'
  if (!isAcknowledged) return 'unacknowledged but present'
  if (place.history === 'done') return starts > 1 ? 'acknowledged, done after extra runs' : 'acknowledged, done once'
  if (place.history !== null) return 'failed or cancelled'
  return place.live === 'parked' ? 'parked' : 'still waiting or running'
}

/** The table, and the first ids of the buckets that must be empty. */
export function formatCensus(census, title = 'census') {
  const lines = [`${title}: ${census.total} jobs`]
  for (const [name, ids] of census.buckets) {
    const worst = name === name.toUpperCase() && ids.length > 0 ? `  ${ids.slice(0, 5).join(' ')}` : ''
    lines.push(`  ${name.padEnd(38)}${String(ids.length).padStart(8)}${worst}`)
  }
  return lines.join('\n')
}

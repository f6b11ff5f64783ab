import type { SeriesPoint } from '../../../client/statistics/statistics.js'
import type { SeriesShown } from '../../protocol/rows.js'
import { SPANS } from '../../protocol/topics.js'
import type { Span } from '../../protocol/topics.js'
import type { Parts } from '../parts.js'

/** The length of a point of each span: at most 168 points. */
const BUCKETS: Readonly<Record<Span, { readonly text: string; readonly ms: number }>> = {
  '15m': { text: '1m', ms: 60_000 },
  '1h': { text: '1m', ms: 60_000 },
  '6h': { text: '5m', ms: 300_000 },
  '24h': { text: '15m', ms: 900_000 },
  '7d': { text: '1h', ms: 3_600_000 },
}
const MAX_AGE_MS = 2_000

/** What ended in the span, over time. */
export async function seriesOf(parts: Parts, span: Span, queue?: string): Promise<SeriesShown> {
  const { text, ms } = BUCKETS[span]
  const now = parts.world.clock.now()
  const points = await parts.shared.read(`series ${span} ${queue ?? ''}`, MAX_AGE_MS, () =>
    parts.mill.stats.series({ queue, from: new Date(now - SPANS[span] + ms), to: new Date(now), bucket: text as '1m' }),
  )
  return columnsOf(points, ms)
}

function columnsOf(points: readonly SeriesPoint[], bucketMs: number): SeriesShown {
  const column = (of: (point: SeriesPoint) => number | undefined): (number | null)[] =>
    points.map((point) => of(point) ?? null)
  const times = (of: 'wait' | 'run'): SeriesShown['wait'] => ({
    p50: column((point) => point[of]?.p50),
    p95: column((point) => point[of]?.p95),
    p99: column((point) => point[of]?.p99),
  })
  return {
    at: points[0]?.at.getTime() ?? 0,
    bucketMs,
    done: column(({ done }) => done),
    failed: column(({ failed }) => failed),
    retried: column(({ retried }) => retried),
    wait: times('wait'),
    run: times('run'),
  }
}

export interface Segment {
  readonly kind: 'done' | 'failed' | 'cancelled' | 'running' | 'retrying' | 'waiting'
  readonly value: number
}

/** A horizontal bar; what is left is the empty track. The counts are beside it, never inside. */
export function Bar({ segments, total, label }: { segments: readonly Segment[]; total: number; label: string }) {
  const shown = segments.filter(({ value }) => value > 0)
  return (
    <span class="meter" role="img" aria-label={label} title={label}>
      {shown.map(({ kind, value }) => (
        <i key={kind} class={`fill-${kind}`} style={{ flex: `0 0 ${shareOf(value, total)}%` }} />
      ))}
    </span>
  )
}

function shareOf(value: number, total: number): number {
  return total <= 0 ? 0 : Math.round((10_000 * Math.min(value, total)) / total) / 100
}

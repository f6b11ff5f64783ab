/**
 * The pause of a queue: until an instant, or until `resume()` (Infinity). Pure; the stores write the result.
 */
export interface QueuePause {
  /** Milliseconds since 1970, or Infinity. */
  readonly until: number
}

/** A pause whose time has passed does not count, also while its row still exists. */
export function isPaused(pause: QueuePause | undefined, now: number): boolean {
  return pause !== undefined && pause.until > now
}

/**
 * The pause after a request; undefined: the queue is not paused. A request by the app replaces the current pause, and an instant in
 * the past resumes the queue. A request by a handler can only lengthen the current pause: it must not end one that the app or
 * another handler set.
 */
export function decidePause(
  current: QueuePause | undefined,
  requested: QueuePause,
  by: 'person' | 'handler',
  now: number,
): QueuePause | undefined {
  const until = by === 'handler' ? Math.max(requested.until, current?.until ?? -Infinity) : requested.until
  return isPaused({ until }, now) ? { until } : undefined
}

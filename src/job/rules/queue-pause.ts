/**
 * The pause of a queue: until an instant, or until somebody resumes it (Infinity). Pure; stores write what comes out.
 */
export interface QueuePause {
  /** Milliseconds since 1970, or Infinity. */
  readonly until: number
}

/** A queue whose pause is over is not paused, whether or not anybody has swept it away. */
export function isPaused(pause: QueuePause | undefined, now: number): boolean {
  return pause !== undefined && pause.until > now
}

/**
 * What stands after somebody asked for a pause; undefined: the queue runs. A person's word stands as it is given, and an
 * instant in the past resumes. A handler's only lengthens: it asks for a rest of its own and must not end that of others.
 */
export function decidePause(
  standing: QueuePause | undefined,
  asked: QueuePause,
  by: 'person' | 'handler',
  now: number,
): QueuePause | undefined {
  const until = by === 'handler' ? Math.max(asked.until, standing?.until ?? -Infinity) : asked.until
  return isPaused({ until }, now) ? { until } : undefined
}

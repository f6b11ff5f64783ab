/**
 * The latest state of something in the store, as a signal of `millrace/reactive` that is read while it is observed, and only then.
 * `for await` waits for the first read, and then gives the latest state whenever the loop asks: states that a slow loop missed
 * are skipped.
 */
export interface LiveState<Value> extends AsyncIterable<Value> {
  /** The state; undefined until it was read. Inside a `computed` or `effect` this also records a dependency. */
  get(): Value | undefined
  /** The state, without recording a dependency. */
  peek(): Value | undefined
  /** A stream of the latest states. */
  stream(): ReadableStream<Value>
}

import type { LiveState } from '../job/live-state.js'
import { ambientContext } from '../reactive/context/ambient.js'
import type { Context, Signal } from '../reactive/index.js'
import { createContext, signal } from '../reactive/index.js'
import type { ChangeStore } from '../store/store.js'
import type { World } from '../world/world.js'
import type { Cancel } from '../world/timers.js'
import { evenPace, ObservedReads } from './observed-reads.js'
import type { Pace, ReadParts } from './observed-reads.js'

/** Jobs, groups, sequences and schedules: read 100 ms apart on hints, and every 250 ms without any. */
const WATCH_PACE = evenPace(100, 250)

/** Where live state is made: in the current context of `millrace/reactive`, else in this one. */
export class LiveContext {
  #context: Context | undefined
  readonly #stops: (() => void)[] = []
  /** Observed signals, also those in a context of the app, which goes on after the mill. */
  readonly #observed = new Set<Signal<unknown>>()
  readonly #parts: ReadParts

  constructor(changes: ChangeStore, { timers, clock }: Pick<World, 'timers' | 'clock'>, failed: ReadParts['failed']) {
    this.#parts = { changes, timers, monotonic: () => clock.monotonic(), failed }
  }

  get context(): Context {
    // An armed timer of the context must not keep a process alive that has stopped its mill.
    return (this.#context ??= createContext({ keepAlive: false }))
  }

  /** A kind of subject: one read covers all observed subjects of it. */
  kind<Row, Value>(kind: LiveKind<Row, Value>): (subject: string) => LiveState<Value> {
    const reads = new ObservedReads<Row>(this.#parts, kind.pace ?? WATCH_PACE, kind.read)
    this.#stops.push(() => reads.stop())
    return (subject) => this.#enter(() => liveState({ reads, observed: this.#observed }, subject, kind))
  }

  /** A subject that has no name: its one signal in the current context, so that an effect may get it again and again. */
  single<Value>(kind: LiveKind<Value, Value>): () => LiveState<Value> {
    const make = this.kind(kind)
    const made = new WeakMap<Context, LiveState<Value>>()
    return () => {
      const context = ambientContext() ?? this.context
      const live = made.get(context) ?? make('all')
      made.set(context, live)
      return live
    }
  }

  /** Readers end, and nothing is read any more. */
  async close(): Promise<void> {
    for (const each of this.#observed) each.dispose()
    for (const stop of this.#stops) stop()
    await this.#context?.close()
  }

  #enter<T>(make: () => T): T {
    return ambientContext() === undefined ? this.context.enter(make) : make()
  }
}

export interface LiveKind<Row, Value> {
  /** Default: that of jobs. */
  readonly pace?: Pace | undefined
  readonly read: (subjects: readonly string[]) => Promise<readonly Row[]>
  readonly isSame: (before: Row, now: Row) => boolean
  readonly valueOf: (row: Row) => Value
}

/** For small values: the texts are compared. */
export function isSameJson(before: unknown, now: unknown): boolean {
  return JSON.stringify(before) === JSON.stringify(now)
}

interface Seen<Value> {
  readonly value: Value
}

function liveState<Row, Value>(
  { reads, observed }: { readonly reads: ObservedReads<Row>; readonly observed: Set<Signal<unknown>> },
  subject: string,
  { isSame, valueOf }: LiveKind<Row, Value>,
): LiveState<Value> {
  const seen = signal<Seen<Value> | undefined>(undefined, {
    whileObserved: (cell): Cancel => {
      let before: Row | undefined
      observed.add(seen as Signal<unknown>)
      const stop = reads.observe(subject, (row) => {
        if (cell.peek() !== undefined && isSame(before as Row, row)) return
        before = row
        cell.set({ value: valueOf(row) })
      })
      return () => {
        observed.delete(seen as Signal<unknown>)
        stop()
      }
    },
  })
  return new LiveSignal(seen)
}

class LiveSignal<Value> implements LiveState<Value> {
  readonly #seen: Signal<Seen<Value> | undefined>

  constructor(seen: Signal<Seen<Value> | undefined>) {
    this.#seen = seen
  }

  get(): Value | undefined {
    return this.#seen.get()?.value
  }
  peek(): Value | undefined {
    return this.#seen.peek()?.value
  }
  stream(): ReadableStream<Value> {
    const values = this[Symbol.asyncIterator]()
    return new ReadableStream<Value>(
      {
        pull: async (controller) => {
          const next = await values.next()
          if (next.done === true) controller.close()
          else controller.enqueue(next.value)
        },
        cancel: async () => void (await values.return?.()),
      },
      { highWaterMark: 0 },
    )
  }

  [Symbol.asyncIterator](): AsyncIterator<Value, undefined> {
    const seen = this.#seen[Symbol.asyncIterator]()
    const next = async (): Promise<IteratorResult<Value, undefined>> => {
      for (;;) {
        const each = await seen.next()
        if (each.done === true) return { done: true, value: undefined }
        // Nothing is read yet.
        if (each.value !== undefined) return { done: false, value: each.value.value }
      }
    }
    const end = async (): Promise<IteratorResult<Value, undefined>> => {
      await seen.return?.()
      return { done: true, value: undefined }
    }
    return { next, return: end }
  }
}

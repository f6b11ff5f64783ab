import { expectTypeOf } from 'vitest'
import type { Computed, Context, FedSignal, Interval, Op, Result, Signal, Snapshot, Spin, Turned } from './index.js'
import {
  attempt,
  batch,
  computed,
  debounce,
  deferred,
  deserialize,
  iterate,
  latest,
  mailbox,
  parallel,
  race,
  read,
  restore,
  sample,
  scope,
  signal,
  sleep,
  spin,
  step,
  throttle,
  timeout,
  track,
  waitFor,
} from './index.js'

/** Types that the compiler must infer; checked by compiling, never run. */
export function inference(ctx: Context): void {
  const count = signal(1)
  expectTypeOf(count).toEqualTypeOf<Signal<number>>()
  expectTypeOf(computed(() => `${count.get()}`)).toEqualTypeOf<Computed<string>>()
  signal('', { whileObserved: (cell) => void expectTypeOf(cell).toEqualTypeOf<FedSignal<string>>() })
  expectTypeOf(count[Symbol.asyncIterator]().next()).resolves.toEqualTypeOf<IteratorResult<number>>()
  expectTypeOf(count.stream()).toEqualTypeOf<ReadableStream<number>>()
  expectTypeOf(latest(sample(count, 5))).toEqualTypeOf<Computed<number | undefined>>()
  expectTypeOf(latest(sample(count, 5), 'none')).toEqualTypeOf<Computed<number | string>>()
  expectTypeOf(batch(() => 'x')).toEqualTypeOf<string>()

  const body = spin(function* () {
    const interval = yield* track(count)
    expectTypeOf(interval).toEqualTypeOf<Interval<number>>()
    expectTypeOf(yield* read(count)).toEqualTypeOf<number>()
    expectTypeOf(yield* waitFor(deferred<Date>())).toEqualTypeOf<Date>()
    expectTypeOf(yield* waitFor(mailbox<string>())).toEqualTypeOf<string>()
    expectTypeOf(yield* waitFor(Promise.resolve(1n))).toEqualTypeOf<bigint>()
    expectTypeOf(yield* waitFor(sleep(5))).toEqualTypeOf<void>()
    expectTypeOf(yield* step('k', async () => true)).toEqualTypeOf<boolean>()
    expectTypeOf(yield* scope('k', helper)).toEqualTypeOf<Date>()
    expectTypeOf(yield* helper()).toEqualTypeOf<Date>()
    const total = yield* iterate(0, function* (n): Op<Turned<number, string>> {
      return n > 3 ? { done: 'enough' } : { next: n + (yield* read(count)) }
    })
    expectTypeOf(total).toEqualTypeOf<string>()
    return { total }
  })
  expectTypeOf(body).toEqualTypeOf<Spin<{ total: string }>>()
  expectTypeOf(ctx.run(body)).toEqualTypeOf<Promise<{ total: string }>>()
  expectTypeOf(ctx.runSync(helper)).toEqualTypeOf<Date>()

  expectTypeOf(sleep(5, 'v')).toEqualTypeOf<Spin<string>>()
  expectTypeOf(parallel<[number, Date]>(sleep(1, 1), spin(helper))).toEqualTypeOf<Spin<[number, Date]>>()
  expectTypeOf(race(sleep(1, 'a'), sleep(2, 'b'))).toEqualTypeOf<Spin<string>>()
  expectTypeOf(timeout(sleep(1, 1), 5, 'late')).toEqualTypeOf<Spin<number | string>>()
  expectTypeOf(attempt(body)).toEqualTypeOf<Spin<Result<{ total: string }>>>()
  expectTypeOf(debounce(count, 5)).toEqualTypeOf<Spin<number>>()
  expectTypeOf(throttle(count, 5, (all: number[] = [], n) => [...all, n])).toEqualTypeOf<Spin<number[]>>()

  const fork = ctx.fork({ bindings: { tenant: 'a' } })
  expectTypeOf(fork).toEqualTypeOf<Context>()
  expectTypeOf(fork.parent).toEqualTypeOf<Context | undefined>()
  expectTypeOf(fork.enter(() => count.get())).toEqualTypeOf<number>()
  expectTypeOf(fork.run(body)).toEqualTypeOf<Promise<{ total: string }>>()
  expectTypeOf(ctx.snapshot({ includePending: false })).toEqualTypeOf<Snapshot>()
  expectTypeOf(deserialize(ctx.snapshot().serialize())).toEqualTypeOf<Snapshot>()
  expectTypeOf(restore(ctx.snapshot(), { build: (made) => made.spawn(body), drain: false })).toEqualTypeOf<Context>()

  // @ts-expect-error -- the text of a snapshot is read first: deserialize(text)
  restore(ctx.snapshot().serialize())
  // @ts-expect-error -- a fork has the executor of its parent
  ctx.fork({ executor: undefined })
  // @ts-expect-error -- a body is a generator, not an async function
  spin(async () => 1)
  // @ts-expect-error -- a spin is waited for, not tracked
  track(body)
  // @ts-expect-error -- a signal is tracked, not waited for
  waitFor(count)
  // @ts-expect-error -- the message must fit the mailbox
  mailbox<string>().post(5)
}

function* helper(): Op<Date> {
  yield* waitFor(sleep(1))
  return new Date(0)
}

/* oxlint-disable require-yield -- a body need not wait for anything */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Computed, Context, Signal, Spin } from './index.js'
import {
  batch,
  computed,
  createSimulation,
  debounce,
  deferred,
  effect,
  iterate,
  mailbox,
  race,
  read,
  signal,
  sleep,
  spin,
  waitFor,
} from './index.js'

/** A node reads some of the nodes before it; the value of a `pivot` decides which others it reads. */
interface Shape {
  readonly kind: 'computed' | 'spin'
  readonly reads: readonly number[]
  readonly pivot: boolean
  readonly modulus: number
}

const SIGNALS = 4

const shape: fc.Arbitrary<Shape> = fc.record({
  kind: fc.constantFrom('computed', 'spin'),
  reads: fc.array(fc.nat(30), { minLength: 1, maxLength: 4 }),
  pivot: fc.boolean(),
  modulus: fc.constantFrom(2, 3, 7, 1000),
})

const write = fc.array(fc.tuple(fc.nat(SIGNALS - 1), fc.nat(5)), { minLength: 1, maxLength: 4 })

/** The oracle: computes the expected value of each node from scratch. */
function recompute(values: readonly number[], shapes: readonly Shape[]): number[] {
  const all = [...values]
  for (const each of shapes) {
    const picks = each.reads.map((pick) => pick % all.length)
    const first = all[picks[0] as number] as number
    const rest = each.pivot && first % 2 === 0 ? [] : picks.slice(1)
    all.push(rest.reduce((sum, pick) => sum + (all[pick] as number), first) % each.modulus)
  }
  return all
}

type Cell = Signal<number> | Computed<number> | Spin<number>

const isSpin = (cell: Cell): cell is Spin<number> => 'cancel' in cell

function* valueOf(cell: Cell) {
  return isSpin(cell) ? yield* waitFor(cell) : yield* read(cell)
}

/** Builds the same graph of cells. Computeds read only computeds and signals. */
function build(ctx: Context, values: readonly number[], shapes: readonly Shape[]) {
  const runs: number[] = []
  const cells: Cell[] = ctx.enter(() => values.map((value) => signal(value)))
  for (const each of shapes) {
    const picks = each.reads.map((pick) => cells[pick % cells.length] as Cell)
    const isPlain = picks.every((pick) => !isSpin(pick))
    const index = cells.length
    runs[index] = 0
    if (each.kind === 'computed' && isPlain) {
      const plain = picks as (Signal<number> | Computed<number>)[]
      cells.push(
        ctx.enter(() =>
          computed(() => {
            runs[index]!++
            const first = (plain[0] as Signal<number>).get()
            const rest = each.pivot && first % 2 === 0 ? [] : plain.slice(1)
            return rest.reduce((sum, pick) => sum + pick.get(), first) % each.modulus
          }),
        ),
      )
    } else {
      const made = ctx.enter(() =>
        spin(function* () {
          const first = yield* valueOf(picks[0] as Cell)
          let sum = first
          for (const pick of each.pivot && first % 2 === 0 ? [] : picks.slice(1)) sum += yield* valueOf(pick)
          runs[index]!++
          return sum % each.modulus
        }),
      )
      ctx.spawn(made)
      cells.push(made)
    }
  }
  return { cells, runs }
}

test('random graphs of signals, computeds and spins agree with recomputing everything', () => {
  fc.assert(
    fc.property(fc.array(shape, { maxLength: 14 }), fc.array(write, { maxLength: 12 }), (shapes, writes) => {
      const values = [1, 2, 3, 4]
      const ctx = createSimulation()
      const { cells, runs } = build(ctx, values, shapes)
      const check = (): void => {
        const actual = ctx.enter(() => cells.map((cell) => cell.get()))
        expect(actual).toEqual(recompute(values, shapes))
      }
      check()
      for (const changes of writes) {
        const before = [...runs]
        for (const [index, value] of changes) values[index] = value
        ctx.enter(() => batch(() => changes.forEach(([index, value]) => (cells[index] as Signal<number>).set(value))))
        check()
        // At most one run for one change, whatever the number of paths.
        expect(runs.every((count, index) => count - (before[index] as number) <= 1)).toBe(true)
      }
      expect(ctx.isIdle()).toBe(true)
    }),
    { numRuns: 300 },
  )
})

test('an effect over random computeds never sees a state between two settled ones', () => {
  fc.assert(
    fc.property(
      fc.array(shape, { minLength: 1, maxLength: 10 }),
      fc.array(write, { maxLength: 8 }),
      (shapes, writes) => {
        const plain = shapes.map((each) => ({ ...each, kind: 'computed' as const }))
        const values = [1, 2, 3, 4]
        const ctx = createSimulation()
        const { cells } = build(ctx, values, plain)
        const seen: number[][] = []
        ctx.enter(() => effect(() => void seen.push(cells.map((cell) => cell.get()))))
        const settled = [recompute(values, plain)]
        for (const changes of writes) {
          for (const [index, value] of changes) values[index] = value
          ctx.enter(() => batch(() => changes.forEach(([index, value]) => (cells[index] as Signal<number>).set(value))))
          settled.push(recompute(values, plain))
        }
        const distinct = settled.filter((state, index) => index === 0 || String(state) !== String(settled[index - 1]))
        expect(seen).toEqual(distinct)
      },
    ),
    { numRuns: 200 },
  )
})

/** One step of a random program. */
type Step =
  | readonly ['set', number, number]
  | readonly ['post', number, number]
  | readonly ['advance', number]
  | readonly ['deliver', number]
  | readonly ['cancel', number]
  | readonly ['dispose', number]

const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    fc.tuple(fc.constant('set' as const), fc.nat(3), fc.nat(5)),
    fc.tuple(fc.constant('post' as const), fc.nat(1), fc.nat(9)),
    fc.tuple(fc.constant('advance' as const), fc.nat(20)),
    fc.tuple(fc.constant('deliver' as const), fc.nat(1)),
    fc.tuple(fc.constant('cancel' as const), fc.nat(5)),
    fc.tuple(fc.constant('dispose' as const), fc.nat(5)),
  ),
  { maxLength: 60 },
)

/** Runs a program on a fixed set of spins of every kind; returns its trace and the counts left. */
function perform(program: readonly Step[]): { trace: string; left: unknown } {
  const ctx = createSimulation({ onFault: () => undefined })
  const lines: string[] = []
  ctx.trace((record) => lines.push(JSON.stringify(record)))
  const cells = ctx.enter(() => [signal(0), signal(1), signal(2), signal(3)])
  const boxes = ctx.enter(() => [mailbox<number>(), mailbox<number>()])
  const given = ctx.enter(() => [deferred<number>(), deferred<number>()])
  const [a, b, c] = cells as [Signal<number>, Signal<number>, Signal<number>]
  const [inbox, outbox] = boxes as [(typeof boxes)[0], (typeof boxes)[0]]
  const [d, e] = given as [(typeof given)[0], (typeof given)[0]]
  const cast: Spin<unknown>[] = ctx.enter(() => [
    debounce(a, 5),
    race(
      sleep(30, -1),
      spin(() => waitFor(d)),
    ),
    spin(function* () {
      return (yield* read(b)) + (yield* waitFor(e))
    }),
    spin(() =>
      iterate(0, function* (n) {
        const m = yield* waitFor(inbox)
        const x = yield* read(c)
        outbox.post(m + x)
        return { next: n + 1 }
      }),
    ),
    spin(function* () {
      const n = yield* read(b)
      const child = spin(function* () {
        return n + (yield* read(a))
      })
      if (n % 2 === 0) yield* waitFor(sleep(n))
      return yield* waitFor(child)
    }),
    spin(function* () {
      for (;;) lines.push(`took ${yield* waitFor(outbox)}`)
    }),
  ])
  for (const each of cast) ctx.spawn(each, { onError: () => undefined })
  for (const [act, index, value = 0] of program) {
    if (act === 'advance') ctx.advanceBy(index)
    else if (act === 'set') ctx.enter(() => cells[index]?.set(value))
    else if (act === 'post') ctx.enter(() => boxes[index]?.post(value))
    else if (act === 'deliver') ctx.enter(() => given[index]?.deliver(1))
    else if (act === 'cancel') cast[index]?.cancel()
    else cast[index]?.dispose()
  }
  for (const each of cast) each.dispose()
  const { running, timers, observers, waiters, pending } = ctx.inspect()
  return { trace: lines.join('\n'), left: { running, timers, observers, waiters, pending } }
}

test('a random program run twice gives the same trace, and disposing everything leaves no nodes', () => {
  fc.assert(
    fc.property(steps, (program) => {
      const first = perform(program)
      expect(perform(program).trace).toBe(first.trace)
      expect(first.left).toEqual({ running: 0, timers: 0, observers: 0, waiters: 0, pending: 0 })
    }),
    { numRuns: 300 },
  )
})

import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Computed, Context, Deferred, Fault, Mailbox, Signal, Spin } from '../index.js'
import {
  batch,
  computed,
  createSimulation,
  debounce,
  deferred,
  deserialize,
  iterate,
  mailbox,
  read,
  restore,
  signal,
  spin,
  waitFor,
} from '../index.js'

/*
 * Random programs of forks, writes, posts, deliveries, time and restores, compared with a small model. The model has no
 * graph and no stamps: a world is what it has written itself, on top of the world it was forked from, and every derived
 * value is computed from scratch when it is compared.
 *
 * MILLRACE_WORLDS=200x1000 runs 200 programs of 1,000 steps.
 */
const { MILLRACE_WORLDS = '' } = process.env
const IS_SAMPLE = MILLRACE_WORLDS === '' // Programs of every length: a failure shrinks to a few steps.
const [PROGRAMS, STEPS] = (IS_SAMPLE ? '60x100' : MILLRACE_WORLDS).split('x').map(Number) as [number, number]

const SIGNALS = 5
const QUIET_MS = 10
const WORLDS_MAX = 8

/** A node adds up some of the nodes before it; an even first one hides the others. */
interface Shape {
  readonly kind: 'computed' | 'spin' | 'owner'
  readonly reads: readonly number[]
}

type Step =
  | { readonly do: 'set'; readonly world: number; readonly writes: readonly (readonly [number, number])[] }
  | { readonly do: 'fork' | 'reload' | 'close'; readonly world: number }
  | { readonly do: Quantified; readonly world: number; readonly amount: number }

type Quantified = 'post' | 'deliver' | 'advance'

const anyWorld = fc.nat(WORLDS_MAX - 1)

const anyStep: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant('set' as const),
      world: anyWorld,
      writes: fc.array(fc.tuple(fc.nat(SIGNALS - 1), fc.nat(6)), { minLength: 1, maxLength: 3 }),
    }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constantFrom('fork', 'reload', 'close'), world: anyWorld }) },
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constantFrom('post', 'deliver', 'advance'), world: anyWorld, amount: fc.nat(7) }),
  },
)

const anyShape: fc.Arbitrary<Shape> = fc.record({
  kind: fc.constantFrom('computed', 'spin', 'owner'),
  reads: fc.array(fc.nat(30), { minLength: 1, maxLength: 3 }),
})

/** What a world has changed itself; the rest it sees in its parent. */
class World {
  readonly parent: World | undefined
  readonly clock: { now: number }
  readonly own: { values: Map<number, Value>; total?: number; given?: number; hasConsumer?: boolean } = {
    values: new Map(),
  }

  constructor(parent: World | undefined, clock: { now: number }) {
    this.parent = parent
    this.clock = clock
  }

  value(index: number): Value {
    return this.own.values.get(index) ?? this.parent?.value(index) ?? { now: index, since: 0, before: undefined }
  }

  get total(): number {
    return this.own.total ?? this.parent?.total ?? 0
  }

  get given(): number | undefined {
    return this.own.given ?? this.parent?.given
  }

  set(index: number, now: number): void {
    const last = this.value(index)
    const { now: time } = this.clock
    // A write makes the signal the world's own, also when the value is the same.
    if (last.now === now) this.own.values.set(index, last)
    else this.own.values.set(index, { now, since: time, before: quiet(last, time) })
  }

  /** A world of its own with all that this one sees. */
  flat(): World {
    const flat = new World(undefined, { now: this.clock.now })
    for (let index = 0; index < SIGNALS; index++) flat.own.values.set(index, this.value(index))
    flat.own.total = this.total
    if (this.given !== undefined) flat.own.given = this.given
    return flat
  }

  /** Everything that the program shows, computed from scratch. */
  view(shapes: readonly Shape[]): unknown {
    const all = Array.from({ length: SIGNALS }, (_, index) => this.value(index).now)
    for (const { reads } of shapes) {
      const picks = reads.map((pick) => all[pick % all.length] as number)
      const [first = 0, ...others] = picks
      all.push(first % 2 === 0 ? first : picks.length + others.reduce((sum, each) => sum + each, first))
    }
    const greeting = this.given === undefined ? undefined : `${this.given} to ${this.value(0).now}`
    return { all, total: this.total, greeting, quiet: quiet(this.value(1), this.clock.now) }
  }
}

/** A value, when it came, and the last one that stayed for a while before. */
interface Value {
  readonly now: number
  readonly since: number
  readonly before: number | undefined
}

function quiet(value: Value, now: number): number | undefined {
  return now - value.since >= QUIET_MS ? value.now : value.before
}

interface Program {
  readonly nodes: (Signal<number> | Computed<number> | Spin<number>)[]
  readonly total: Signal<number>
  readonly box: Mailbox<number>
  readonly given: Deferred<number>
  readonly greeting: Spin<string>
  readonly quiet: Spin<number>
}

const isSpin = (node: unknown): node is Spin<number> => 'cancel' in (node as object)

/** The program under test. It has the same addresses each time. */
function build(ctx: Context, shapes: readonly Shape[]): Program {
  const nodes: Program['nodes'] = Array.from({ length: SIGNALS }, (_, index) => signal(index, { key: `s${index}` }))
  for (const [index, shape] of shapes.entries()) nodes.push(makeNode(ctx, shape, nodes, `n${index}`))
  const total = signal(0, { key: 'total' })
  const box = mailbox<number>({ key: 'box' })
  const given = deferred<number>({ key: 'given' })
  ctx.spawn(
    spin(
      () =>
        iterate(0, function* (turn) {
          const message = yield* waitFor(box)
          const factor = yield* read(nodes[2] as Signal<number>)
          total.update((sum) => sum + message * factor)
          return { next: turn + 1 }
        }),
      { key: 'consumer' },
    ),
  )
  const greeting = spin(
    function* () {
      const who = yield* read(nodes[0] as Signal<number>)
      return `${yield* waitFor(given)} to ${who}`
    },
    { key: 'greeting' },
  )
  const slow = debounce(nodes[1] as Signal<number>, QUIET_MS)
  ctx.spawn(greeting)
  ctx.spawn(slow)
  return { nodes, total, box, given, greeting, quiet: slow }
}

function makeNode(
  ctx: Context,
  { kind, reads }: Shape,
  before: Program['nodes'],
  key: string,
): Program['nodes'][number] {
  const picks = reads.map((pick) => before[pick % before.length] as Signal<number>)
  if (kind === 'computed' && !picks.some(isSpin)) {
    return computed(() => {
      const first = (picks[0] as Signal<number>).get()
      return first % 2 === 0 ? first : picks.reduce((sum, each) => sum + each.get(), picks.length)
    })
  }
  const valueOf = (node: unknown) => (isSpin(node) ? waitFor(node) : read(node as Signal<number>))
  const made = spin(
    function* () {
      const first = yield* valueOf(picks[0])
      if (first % 2 === 0) return first
      const rest = function* () {
        let sum = picks.length + first
        for (const pick of picks.slice(1)) sum += yield* valueOf(pick)
        return sum
      }
      return kind === 'owner' ? yield* waitFor(spin(rest, { key: 'rest' })) : yield* rest()
    },
    { key },
  )
  ctx.spawn(made)
  return made
}

/** A world of the program and the world of the model. */
interface Pair {
  ctx: Context
  program: Program
  model: World
}

function look({ ctx, program }: Pair): unknown {
  const valueOf = (spun: Spin<unknown>): unknown => {
    const result = spun.result()
    return result?.ok === true ? result.value : result?.error
  }
  return ctx.enter(() => ({
    all: program.nodes.map((node) => (isSpin(node) ? valueOf(node) : node.get())),
    total: program.total.get(),
    greeting: valueOf(program.greeting),
    quiet: valueOf(program.quiet),
  }))
}

/** No step of these programs may go wrong in any world, also in one that is not compared. */
function onFault({ site, addr, error }: Fault): void {
  faults.push(`${site} of ${addr}: ${String(error)}`)
}

const faults: string[] = []

function perform(pairs: Pair[], step: Step, shapes: readonly Shape[]): number {
  const at = step.world % pairs.length
  const pair = pairs[at] as Pair
  const { ctx, program, model } = pair
  if (step.do === 'set') {
    ctx.enter(() => batch(() => step.writes.forEach(([i, value]) => (program.nodes[i] as Signal<number>).set(value))))
    // In a batch only the last value of a signal counts.
    for (const [index, value] of new Map(step.writes)) model.set(index, value)
  } else if (step.do === 'fork') {
    if (pairs.length < WORLDS_MAX) pairs.push({ ctx: ctx.fork(), program, model: new World(model, model.clock) })
    return pairs.length - 1
  } else if (step.do === 'reload') {
    let again: Program | undefined
    const snapshot = deserialize(ctx.snapshot({ cleanInFlight: false }).serialize())
    const restored = restore(snapshot, { onFault, build: (made) => (again = build(made, shapes)) })
    pairs[at] = { ctx: restored, program: again as unknown as Program, model: model.flat() }
  } else if (step.do === 'close') {
    if (pairs.length > 1) pairs.splice(at, 1) // The context is dropped, and lives on as the parent of its forks.
    return 0
  } else if (step.do === 'post') {
    ctx.enter(() => program.box.post(step.amount))
    model.own.total = model.total + step.amount * model.value(2).now
  } else if (step.do === 'deliver') {
    const isFirst = ctx.enter(() => program.given.deliver(step.amount))
    expect(isFirst).toBe(model.given === undefined)
    if (isFirst) model.own.given = step.amount
  } else if (step.do === 'advance') {
    ctx.advanceBy(step.amount)
    model.clock.now += step.amount
  }
  return at
}

function check(shapes: readonly Shape[], steps: readonly Step[]): void {
  const ctx = createSimulation({ onFault })
  const pairs: Pair[] = [{ ctx, program: ctx.enter(() => build(ctx, shapes)), model: new World(undefined, { now: 0 }) }]
  for (const step of steps) {
    const touched = perform(pairs, step, shapes)
    // Looking copies what it sees, so only the touched world is looked at each time.
    const pair = pairs[touched] as Pair
    expect(look(pair)).toEqual(pair.model.view(shapes))
    expect(faults.splice(0)).toEqual([])
  }
  for (const pair of pairs) expect(look(pair)).toEqual(pair.model.view(shapes))
}

test('R55 R61 random worlds that are forked, changed and restored agree with a model', () => {
  const anyProgram = fc.array(anyStep, { minLength: IS_SAMPLE ? 0 : STEPS, maxLength: STEPS, size: 'max' })
  fc.assert(fc.property(fc.array(anyShape, { maxLength: 8 }), anyProgram, check), { numRuns: PROGRAMS })
}, 600_000)

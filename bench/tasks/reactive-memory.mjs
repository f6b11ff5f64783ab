/** Each kind of thing, and how many are created. Every case keeps all of them reachable. */
const KINDS = {
  signal: { count: 200_000, make: (library) => (i) => library.signal(i) },
  'unread computed': {
    count: 100_000,
    make: (library) => {
      const head = library.signal(1)
      return () => library.computed(() => library.read(head))
    },
  },
  'observed computed': {
    count: 50_000,
    make: (library) => {
      const head = library.signal(1)
      return () => {
        const cell = library.computed(() => library.read(head))
        library.effect(() => {
          library.read(cell)
        })
        return cell
      }
    },
  },
  'idle spin, 2 dependencies': { count: 50_000, make: makeSpins },
  context: {
    count: 5_000,
    make:
      ({ library }) =>
      () =>
        library.createSimulation(),
  },
  'fork, before its first write': { count: 5_000, make: makeForks },
}

/** Bytes of heap for each, after a collection. Needs `--expose-gc`. */
export async function run({ kind, dist }, contestant) {
  const library = await contestant.open({ dist })
  const { count, make } = KINDS[kind]
  return library.within(() => {
    const create = make(library)
    const warm = Array.from({ length: 1000 }, (_, i) => create(i)) // Compiled code and its maps are not part of the figure.
    const kept = new Array(count)
    globalThis.gc()
    const before = process.memoryUsage().heapUsed
    for (let i = 0; i < count; i += 1) kept[i] = create(i)
    globalThis.gc()
    const bytes = (process.memoryUsage().heapUsed - before) / count
    if (kept.length + warm.length !== count + 1000) throw new Error('the cells were not kept')
    return { bytes }
  })
}

/** Completed spins that nothing observes, with two dependencies that all of them share. */
function makeSpins({ library }) {
  const { signal, spin, read, currentContext } = library
  const context = currentContext()
  const [a, b] = [signal(1), signal(2)]
  const sum = function* () {
    return (yield* read(a)) + (yield* read(b))
  }
  return () => {
    const each = spin(sum)
    context.runSync(each)
    return each
  }
}

/** Forks of a context with a thousand signals and a spin. */
function makeForks({ library }) {
  const { createSimulation, signal, spin, read } = library
  const context = createSimulation()
  const cells = context.enter(() => Array.from({ length: 1000 }, (_, i) => signal(i)))
  const first = context.enter(() =>
    spin(function* () {
      return yield* read(cells[0])
    }),
  )
  context.runSync(first)
  return () => context.fork()
}

/**
 * Graph shapes. `build` creates the graph and returns `turn`, one pass of its writes, which throws when a value or the number
 * of runs is wrong: a library that skips work has no figure. Effects return nothing, because some libraries take what they
 * return as a clean-up.
 *
 * @typedef {{ read(cell: any): any, write(cell: any, value: any): void, signal(value: any): any, computed(f: () => any): any,
 *   effect(f: () => void): () => void, batch(f: () => void): void }} Library
 * @typedef {(library: Library) => (turn: number) => void} Shape
 */

/** @type {{ [name: string]: Shape }} */
export const KAIRO = { avoidable, broad, deep, diamond, mux, repeated, triangle, unstable, mol }

/** @type {{ [name: string]: Shape }} */
export const CELLX = {
  cellx1000: (library) => () => cellx(library, 1000),
  cellx2500: (library) => () => cellx(library, 2500),
}

/** @type {{ [name: string]: Shape }} */
export const SMALL = {
  'create signals': createSignals,
  'create computeds': createComputeds,
  'create effects': createEffects,
  'unobserved write': unobservedWrite,
  'write, 1 effect': writeToEffect,
  'write, 1 computed, 1 effect': writeToComputed,
}

export const SHAPES = { ...KAIRO, ...CELLX, ...SMALL }

function expect(what, got, expected) {
  if (got !== expected) throw new Error(`${what}: expected ${expected}, got ${got}`)
}

/** Work that the compiler cannot remove. */
function busy() {
  let sum = 0
  for (let i = 0; i < 100; i += 1) sum += i
  return sum
}

/** The value of the second computed never changes, so nothing after it may run. */
function avoidable({ signal, computed, effect, read, write }) {
  let runs = 0
  const head = signal(0)
  const c1 = computed(() => read(head))
  const c2 = computed(() => (read(c1), 0))
  const c3 = computed(() => {
    runs += 1
    busy()
    return read(c2) + 1
  })
  const c4 = computed(() => read(c3) + 2)
  const c5 = computed(() => read(c4) + 3)
  effect(() => {
    read(c5)
    busy()
  })
  return (turn) => {
    for (let i = 1; i <= 1000; i += 1) write(head, turn * 1000 + i)
    expect('c5', read(c5), 6)
    expect('runs of c3', runs, 1)
  }
}

function broad({ signal, computed, effect, read, write }) {
  let runs = 0
  let last
  const head = signal(0)
  for (let i = 0; i < 50; i += 1) {
    const below = computed(() => read(head) + i)
    last = computed(() => read(below) + 1)
    const above = last
    effect(() => {
      read(above)
      runs += 1
    })
  }
  return (turn) => {
    runs = 0
    for (let i = 1; i <= 50; i += 1) {
      write(head, turn * 50 + i)
      expect('the last', read(last), turn * 50 + i + 50)
    }
    expect('effect runs', runs, 2500)
  }
}

function deep({ signal, computed, effect, read, write }) {
  let runs = 0
  const head = signal(0)
  let tip = head
  for (let i = 0; i < 50; i += 1) {
    const below = tip
    tip = computed(() => read(below) + 1)
  }
  const top = tip
  effect(() => {
    read(top)
    runs += 1
  })
  return (turn) => {
    runs = 0
    for (let i = 1; i <= 50; i += 1) {
      write(head, turn * 50 + i)
      expect('the tip', read(top), turn * 50 + i + 50)
    }
    expect('effect runs', runs, 50)
  }
}

function diamond({ signal, computed, effect, read, write }) {
  let runs = 0
  const head = signal(0)
  const sides = Array.from({ length: 5 }, () => computed(() => read(head) + 1))
  const sum = computed(() => sides.reduce((total, side) => total + read(side), 0))
  effect(() => {
    read(sum)
    runs += 1
  })
  return (turn) => {
    runs = 0
    for (let i = 1; i <= 500; i += 1) {
      write(head, turn * 500 + i)
      expect('the sum', read(sum), (turn * 500 + i + 1) * 5)
    }
    expect('effect runs', runs, 500)
  }
}

/** Many signals into one object, and a selector for each of them. */
function mux({ signal, computed, effect, read, write }) {
  let runs = 0
  const heads = Array.from({ length: 100 }, () => signal(0))
  const object = computed(() => Object.fromEntries(heads.map((head, index) => [index, read(head)])))
  const selected = heads.map((_, index) => {
    const one = computed(() => read(object)[index])
    return computed(() => read(one) + 1)
  })
  for (const each of selected)
    effect(() => {
      read(each)
      runs += 1
    })
  return (turn) => {
    runs = 0
    for (let i = 0; i < 10; i += 1) {
      write(heads[i], turn + i + 1)
      expect('the selector', read(selected[i]), turn + i + 2)
    }
    expect('effect runs', runs, 10)
  }
}

function repeated({ signal, computed, effect, read, write }) {
  let runs = 0
  const head = signal(0)
  const sum = computed(() => {
    let total = 0
    for (let i = 0; i < 30; i += 1) total += read(head)
    return total
  })
  effect(() => {
    read(sum)
    runs += 1
  })
  return (turn) => {
    runs = 0
    for (let i = 1; i <= 100; i += 1) {
      write(head, turn * 100 + i)
      expect('the sum', read(sum), (turn * 100 + i) * 30)
    }
    expect('effect runs', runs, 100)
  }
}

function triangle({ signal, computed, effect, read, write }) {
  let runs = 0
  const head = signal(0)
  const levels = [head]
  for (let i = 1; i < 10; i += 1) {
    const below = levels[i - 1]
    levels.push(computed(() => read(below) + 1))
  }
  const sum = computed(() => levels.reduce((total, level) => total + read(level), 0))
  effect(() => {
    read(sum)
    runs += 1
  })
  return (turn) => {
    runs = 0
    for (let i = 1; i <= 100; i += 1) {
      write(head, turn * 100 + i)
      expect('the sum', read(sum), (turn * 100 + i) * 10 + 45)
    }
    expect('effect runs', runs, 100)
  }
}

/** A computed that reads one of two branches, twenty times, and the other one after the next write. */
function unstable({ signal, computed, effect, read, write }) {
  let runs = 0
  const head = signal(0)
  const double = computed(() => read(head) * 2)
  const inverse = computed(() => -read(head))
  const current = computed(() => {
    let total = 0
    for (let i = 0; i < 20; i += 1) total += read(head) % 2 === 0 ? read(inverse) : read(double)
    return total
  })
  effect(() => {
    read(current)
    runs += 1
  })
  return (turn) => {
    runs = 0
    for (let i = 1; i <= 100; i += 1) {
      const value = turn * 100 + i
      write(head, value)
      expect('the branch', read(current), value % 2 === 0 ? -value * 20 : value * 40)
    }
    expect('effect runs', runs, 100)
  }
}

function fibonacci(n) {
  return n < 2 ? 1 : fibonacci(n - 1) + fibonacci(n - 2)
}

const heavy = (n) => n + fibonacci(16)

/** Little graph, much work: what a library adds to computeds that cost something. */
function mol({ signal, computed, effect, batch, read, write }) {
  let seen = []
  const [a, b] = [signal(0), signal(0)]
  const c = computed(() => (read(a) % 2) + (read(b) % 2))
  const d = computed(() => [0, 1, 2, 3, 4].map((i) => ({ x: i + (read(a) % 2) - (read(b) % 2) })))
  const e = computed(() => heavy(read(c) + read(a) + read(d)[0].x))
  const f = computed(() => heavy(read(d)[2].x || read(b)))
  const g = computed(() => read(c) + (read(c) || read(e) % 2) + read(d)[4].x + read(f))
  effect(() => {
    seen.push(heavy(read(g)))
  })
  effect(() => {
    seen.push(read(g))
  })
  effect(() => {
    seen.push(heavy(read(f)))
  })
  return (turn) => {
    seen = []
    batch(() => {
      write(b, 1)
      write(a, 1 + turn * 2)
    })
    batch(() => {
      write(a, 2 + turn * 2)
      write(b, 2)
    })
    if (seen.length < 4) throw new Error(`effect runs: expected at least 4, got ${seen.length}`)
  }
}

/** Layers of four computeds, each layer of the one before, an effect on each; then one batch that changes all inputs. */
function cellx({ signal, computed, effect, batch, read, write }, layers) {
  const start = [1, 2, 3, 4].map((value) => signal(value))
  let [p1, p2, p3, p4] = start
  let runs = 0
  const watch = (cell) =>
    effect(() => {
      read(cell)
      runs += 1
    })
  for (let i = 0; i < layers; i += 1) {
    const [q1, q2, q3, q4] = [p1, p2, p3, p4]
    p1 = computed(() => read(q2))
    p2 = computed(() => read(q1) - read(q3))
    p3 = computed(() => read(q2) + read(q4))
    p4 = computed(() => read(q3))
    for (const each of [p1, p2, p3, p4]) watch(each)
    for (const each of [p1, p2, p3, p4]) read(each)
  }
  const end = () => [p1, p2, p3, p4].map(read).join()
  expect('before', end(), cellxEnd([1, 2, 3, 4], layers))
  runs = 0
  batch(() => {
    for (const [index, value] of [4, 3, 2, 1].entries()) write(start[index], value)
  })
  expect('after', end(), cellxEnd([4, 3, 2, 1], layers))
  if (runs === 0 || runs > layers * 4) throw new Error(`effect runs: expected 1 to ${layers * 4}, got ${runs}`)
}

/** The same layers in plain arithmetic. */
function cellxEnd(from, layers) {
  let [a, b, c, d] = from
  for (let i = 0; i < layers; i += 1) [a, b, c, d] = [b, a - c, b + d, c]
  return [a, b, c, d].join()
}

/** So many, all kept until the turn ends, that the collector has to move them: a cell's size is a part of its price. */
export const CREATED = 100_000

function createSignals({ signal, read }) {
  return () => {
    const cells = new Array(CREATED)
    for (let i = 0; i < CREATED; i += 1) cells[i] = signal(i)
    expect('the last', read(cells[CREATED - 1]), CREATED - 1)
  }
}

function createComputeds({ signal, computed, read }) {
  const head = signal(1)
  return () => {
    const cells = new Array(CREATED)
    for (let i = 0; i < CREATED; i += 1) cells[i] = computed(() => read(head) + i)
    expect('the last', read(cells[CREATED - 1]), CREATED)
  }
}

/** Each is disposed again. */
function createEffects({ signal, effect, read }) {
  const head = signal(1)
  let sum = 0
  return () => {
    sum = 0
    for (let i = 0; i < CREATED; i += 1)
      effect(() => {
        sum += read(head)
      })()
    expect('runs', sum, CREATED)
  }
}

export const WRITES = 10_000

function unobservedWrite({ signal, read, write }) {
  const head = signal(0)
  return (turn) => {
    for (let i = 1; i <= WRITES; i += 1) write(head, turn * WRITES + i)
    expect('the value', read(head), (turn + 1) * WRITES)
  }
}

function writeToEffect({ signal, effect, read, write }) {
  const head = signal(0)
  let runs = 0
  effect(() => {
    read(head)
    runs += 1
  })
  return (turn) => {
    runs = 0
    for (let i = 1; i <= WRITES; i += 1) write(head, turn * WRITES + i)
    expect('effect runs', runs, WRITES)
  }
}

function writeToComputed({ signal, computed, effect, read, write }) {
  const head = signal(0)
  const above = computed(() => read(head) + 1)
  let runs = 0
  effect(() => {
    read(above)
    runs += 1
  })
  return (turn) => {
    runs = 0
    for (let i = 1; i <= WRITES; i += 1) write(head, turn * WRITES + i)
    expect('effect runs', runs, WRITES)
  }
}

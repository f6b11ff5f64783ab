import { cpuUs } from '../clock.mjs'

const SAMPLE_US = 60_000

/** Spins and mailboxes: each case returns what it did in one turn, and is measured like a shape. */
const CASES = {
  'wait chain of 200': chain,
  'fan-out of 1,000': fanOut,
  'one spin': oneSpin,
  'mailbox, iterate': messages,
  'fork of 10 signals': (library, context) => forks(library, context, 10),
  'fork of 100,000 signals': (library, context) => forks(library, context, 100_000),
}

/** Runs of bodies, or messages, for each second of CPU time. */
export async function run({ name, samples, dist }, contestant) {
  const { library } = await contestant.open({ dist })
  const context = library.createSimulation()
  const turn = context.enter(() => CASES[name](library, context))
  let turns = 0
  const rate = (us) => {
    const began = cpuUs()
    let done = 0
    do done += context.enter(() => turn(turns++))
    while (cpuUs() - began < us)
    return (done / (cpuUs() - began)) * 1e6
  }
  rate(4 * SAMPLE_US)
  return { rate: Math.max(...Array.from({ length: samples }, () => rate(SAMPLE_US))) }
}

function expect(what, got, expected) {
  if (got !== expected) throw new Error(`${what}: expected ${expected}, got ${got}`)
}

function chain({ signal, spin, read, waitFor }, context) {
  let runs = 0
  const head = signal(0)
  let tip = spin(function* () {
    runs += 1
    return yield* read(head)
  })
  for (let i = 1; i < 200; i += 1) {
    const below = tip
    tip = spin(function* () {
      const value = (yield* waitFor(below)) + 1
      runs += 1
      return value
    })
  }
  const top = tip
  context.runSync(top)
  return (turn) => {
    runs = 0
    head.set(turn + 1)
    expect('the tip', top.get(), turn + 200)
    expect('runs', runs, 200)
    return runs
  }
}

function fanOut({ signal, read }, context) {
  let runs = 0
  const head = signal(0)
  for (let i = 0; i < 1000; i += 1)
    context.spawn(function* () {
      yield* read(head)
      runs += 1
    })
  return (turn) => {
    runs = 0
    head.set(turn + 1)
    expect('runs', runs, 1000)
    return runs
  }
}

function oneSpin({ signal, spin, read }, context) {
  const head = signal(0)
  const next = spin(function* () {
    return (yield* read(head)) + 1
  })
  context.runSync(next)
  return (turn) => {
    for (let i = 0; i < 1000; i += 1) {
      head.set(turn * 1000 + i + 1)
      expect('the result', next.get(), turn * 1000 + i + 2)
    }
    return 1000
  }
}

function messages({ mailbox, iterate, waitFor }, context) {
  let taken = 0
  const box = mailbox()
  context.spawn(() =>
    iterate(0, function* (n) {
      yield* waitFor(box)
      taken += 1
      return { next: n + 1 }
    }),
  )
  return () => {
    taken = 0
    for (let i = 0; i < 1000; i += 1) box.post(i)
    expect('messages', taken, 1000)
    return taken
  }
}

/** Forks a context, writes a signal of it, and drops the fork. */
function forks({ signal }, context, count) {
  const cells = Array.from({ length: count }, (_, i) => signal(i))
  return (turn) => {
    for (let i = 0; i < 100; i += 1) {
      const fork = context.fork()
      fork.enter(() => cells[0].set(-turn - 1))
      expect('the parent', cells[0].peek(), 0)
    }
    return 100
  }
}

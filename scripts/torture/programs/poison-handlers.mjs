/** Handlers that do what a handler must not do. In the event loop of a worker, or in a process of their own. */
export default function run({ kind }, ctx) {
  return ACTS[kind](ctx)
}

const never = () => new Promise(() => undefined)

const ACTS = {
  exit: () => process.exit(3),
  abort: () => process.abort(),
  segfault: () => {
    process.kill(process.pid, 'SIGSEGV')
    return never()
  },
  heap: () => {
    const kept = []
    for (;;) kept.push(new Array(100_000).fill(kept.length))
  },
  spin: () => {
    for (;;);
  },
  floating: () => {
    void Promise.reject(new Error('floating'))
    return never()
  },
  deaf: () => never(),
  deep: () => {
    const deeper = () => deeper() + 1
    return { toJSON: deeper }
  },
}

import type { Hooks } from '../../src/job/attempt/hooks.js'
import type { Hint, Store } from '../../src/store/store.js'
import { never } from '../../src/testing/simulation/faults.js'
import type { SimProcess } from '../../src/testing/simulation/sim-process.js'
import type { Logger } from '../../src/world/log.js'
import type { World } from '../../src/world/world.js'
import type { SeamFault } from './seam.js'
import type { SeamCalls } from './seam-calls.js'

/** What a callback of the app fails with. */
export class CallbackError extends Error {}

/** Hooks of an app around everything; each call of one may fail. */
export function failingHooks(process: SimProcess, calls: SeamCalls): Hooks {
  return {
    enqueue: (_, next) => {
      const fault = calls.enter('hook:enqueue', process)
      if (fault === 'throws') throw new CallbackError('a hook throws before its jobs are written')
      const written = next()
      return fault === 'rejects' ? written.then(() => fail(fault)) : written
    },
    start: ({ id }, next) => {
      const fault = calls.enter('hook:start', process)
      if (fault === 'throws') throw new CallbackError('a hook throws before its handler')
      const ended = next()
      // Its handler returns, and its attempt fails all the same.
      if (fault !== undefined)
        void ended.then(
          () => calls.sim.runs.failed(id),
          () => undefined,
        )
      if (fault === 'never answers') return ended.then(() => never())
      return fault === 'rejects' ? ended.then(() => fail(fault)) : ended
    },
    settle: () => fail(calls.enter('hook:settle', process)),
  }
}

/** A logger of an app; each line may fail. */
export function failingLogger(process: SimProcess, calls: SeamCalls): Logger {
  const write = (): void => fail(calls.enter('log', process)) as void
  return { debug: write, info: write, warn: write, error: write }
}

/** A store whose hints may be lost, late or doubled. */
export function failingHints(store: Store, process: SimProcess, calls: SeamCalls): Store {
  const onHint = (callback: (hint: Hint) => void): (() => void) =>
    store.changes.onHint((hint) => {
      const fault = calls.enter('hint', process)
      if (fault === 'late') process.world.timers.after(calls.lateMs, () => callback(hint))
      else if (fault !== 'lost') callback(hint)
      if (fault === 'twice') callback(hint)
    })
  const failing: Store = new Proxy(store, {
    get: (target, name) => {
      if (name === 'changes') return failing
      if (name === 'onHint') return onHint
      return Reflect.get(target, name, target) as unknown
    },
  })
  return failing
}

/** A world whose timers may be late. */
export function failingTimers(world: World, process: SimProcess, calls: SeamCalls): World {
  const lateMs = (): number => {
    const fault = calls.enter('timer', process)
    if (fault === 'lease lost') calls.suspend(process)
    return fault === 'late' ? calls.lateMs : 0
  }
  const { timers } = world
  return {
    ...world,
    timers: {
      after: (ms, run, options) => timers.after(ms + lateMs(), run, options),
      soon: (run) => {
        const ms = lateMs()
        if (ms === 0) timers.soon(run)
        else timers.after(ms, run)
      },
    },
  }
}

function fail(fault: SeamFault | undefined): unknown {
  if (fault === 'throws') throw new CallbackError('a callback throws')
  if (fault === 'rejects') return Promise.reject(new CallbackError('a callback rejects'))
  return fault === 'never answers' ? never() : undefined
}

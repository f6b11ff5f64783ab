import type { Handle } from '../job/enqueue.js'
import type { Mill } from '../mill/surface.js'
import type { Simulation } from './simulation.js'

/** A mill whose acknowledgements are noted: what was promised through it is what the simulation holds the engine to. */
export function witness(mill: Mill, sim: Simulation): Mill {
  const acknowledge = <Result>(handle: Handle<Result>): Handle<Result> => {
    sim.acknowledged.add(handle.id)
    return handle
  }
  type Call = (...given: never[]) => Promise<never>
  const noted: { readonly [verb: string]: (call: Call, given: never[]) => Promise<unknown> } = {
    enqueue: async (call, given) => acknowledge(await call(...given)),
    schedule: async (call, given) => {
      const handle: Handle<unknown> = acknowledge(await call(...given))
      sim.book.notBefore(handle.id, 0)
      return handle
    },
    enqueueMany: async (call, given) => (await (call(...given) as Promise<Handle<unknown>[]>)).map(acknowledge),
    retry: (call, given) => {
      const id = idOf(given)
      sim.revivals.set(id, (sim.revivals.get(id) ?? 0) + 1)
      sim.book.allow(id)
      return call(...given)
    },
    delete: (call, given) => {
      sim.forgettable.add(idOf(given))
      return call(...given)
    },
    edit: (call, given) => {
      sim.book.notBefore(idOf(given), 0)
      return call(...given)
    },
    cancel: async (call, given) => {
      const cancelled: boolean = await call(...given)
      if (cancelled) sim.book.cancelled(idOf(given), sim.time.now)
      return cancelled
    },
  }
  return new Proxy(mill, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target)
      if (typeof value !== 'function') return value
      const call = value.bind(target) as Call
      const note = typeof name === 'string' && Object.hasOwn(noted, name) ? noted[name] : undefined
      return note === undefined ? call : (...given: never[]) => note(call, given)
    },
  })
}

function idOf(given: readonly unknown[]): string {
  return given[0] as string
}

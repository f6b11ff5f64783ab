import type { JobEdit } from '../../client/commands/edit.js'
import type { FlowBuilder } from '../../client/flow/flow.js'
import type { QueueHandle } from '../../client/commands/queues.js'
import type { When } from '../../job/duration/duration.js'
import type { EnqueueOptions, Handle } from '../../job/enqueue.js'
import type { Mill } from '../../mill/mill-type.js'
import { CANCELLED } from './request-book.js'
import type { Pledge } from './request-book.js'
import type { Simulation } from './simulation.js'

/** A mill whose acknowledgements are noted: what was promised through it is what the simulation holds the engine to. */
export function witness(mill: Mill, sim: Simulation): Mill {
  const noted = notedVerbs(mill, sim)
  return new Proxy(mill, {
    get(target, name) {
      if (typeof name === 'string' && Object.hasOwn(noted, name)) return noted[name as keyof typeof noted]
      const value: unknown = Reflect.get(target, name, target)
      return typeof value === 'function' ? (value.bind(target) as unknown) : value
    },
  })
}

type Noted = Partial<{ readonly [Verb in keyof Mill]: unknown }>

function notedVerbs(mill: Mill, sim: Simulation): Noted {
  const cancel = (id: string): Promise<boolean> => {
    sim.calledOff.add(id)
    return sim.requests.ofJob(id, {
      call: () => mill.cancel(id),
      voids: false,
      pledge: (done, standing) => (done ? since(sim, CANCELLED, Infinity) : standing),
    })
  }
  const seen = <Result>(handle: Handle<Result>): Handle<Result> => ({ ...handle, cancel: () => cancel(handle.id) })
  // In a transaction the caller's commit acknowledges the job, and the caller records that.
  const acknowledge = <Result>(handle: Handle<Result>, options: EnqueueOptions | undefined): Handle<Result> => {
    if (options?.tx === undefined) sim.acknowledged.add(handle.id)
    return seen(handle)
  }
  return {
    enqueue: (job: string, payload?: unknown, options?: EnqueueOptions) =>
      mill.enqueue(job, payload, options).then((handle) => acknowledge(handle, options)),
    schedule: async (job: string, payload: unknown, when: When, options?: EnqueueOptions) => {
      const handle = acknowledge(await mill.schedule(job, payload, when, options), options)
      sim.book.notBefore(handle.id, 0)
      return handle
    },
    enqueueMany: (job: string, payloads: readonly unknown[], options?: BulkOptions) => {
      const first = typeof options === 'function' ? options(payloads[0], 0) : options
      return mill.enqueueMany(job, payloads, options).then((all) => all.map((handle) => acknowledge(handle, first)))
    },
    flow: async (build: (f: FlowBuilder) => void, options?: { readonly tx?: unknown }) =>
      (await mill.flow(build, options)).map((handle) => acknowledge(handle, options)),
    handle: (id: string) => seen(mill.handle(id)),
    delete: (id: string) => {
      sim.forgettable.add(id)
      return mill.delete(id)
    },
    queue: (name: string) => witnessQueue(mill.queue(name), sim),
    cancel,
    ...notedChanges(mill, sim),
  }
}

type BulkOptions = EnqueueOptions | ((payload: unknown, index: number) => EnqueueOptions)

function notedChanges(mill: Mill, sim: Simulation): Noted {
  return {
    retry: (id: string) => {
      sim.revivals.set(id, (sim.revivals.get(id) ?? 0) + 1)
      sim.book.allow(id)
      return sim.requests.ofJob(id, { call: () => mill.retry(id), voids: true, pledge: () => undefined })
    },
    edit: (id: string, change: JobEdit) => {
      sim.book.notBefore(id, 0)
      // A parked job runs again when it is edited; a paused one stays so, and a finished one cannot be.
      const voids = !KEPT_BY_EDIT.has(sim.stateOf(id))
      return sim.requests.ofJob(id, { call: () => mill.edit(id, change), voids, pledge: (_, standing) => standing })
    },
    pause: (id: string) =>
      sim.requests.ofJob(id, {
        call: () => mill.pause(id),
        voids: false,
        pledge: (done, standing) => standing ?? (done ? since(sim, 'X14, paused', Infinity) : undefined),
      }),
    resume: (id: string) =>
      sim.requests.ofJob(id, { call: () => mill.resume(id), voids: true, pledge: () => undefined }),
  }
}

const KEPT_BY_EDIT: ReadonlySet<string | undefined> = new Set(['paused', 'done', 'failed', 'cancelled'])

function witnessQueue(queue: QueueHandle, sim: Simulation): QueueHandle {
  const asked = (call: () => Promise<void>, until: (calledAt: number) => number | undefined): Promise<void> => {
    const calledAt = Math.floor(sim.clock.soonest)
    return sim.requests.ofQueue(queue.name, {
      call,
      voids: true,
      pledge: () => {
        const end = until(calledAt)
        return end === undefined ? undefined : since(sim, 'X14, queue paused', end)
      },
    })
  }
  return {
    name: queue.name,
    pause: () =>
      asked(
        () => queue.pause(),
        () => Infinity,
      ),
    // Only a number of ms is followed: what else may be said needs a clock to be understood.
    pauseUntil: (when) =>
      asked(
        () => queue.pauseUntil(when),
        (calledAt) => (typeof when === 'number' ? calledAt + when : undefined),
      ),
    resume: () =>
      asked(
        () => queue.resume(),
        () => undefined,
      ),
    get: () => queue.get(),
  }
}

/** A handler pauses its queue: that only lengthens the present pause. */
export function handlerPauses(sim: Simulation, queue: string, ms: number, call: () => Promise<void>): Promise<void> {
  const until = Math.floor(sim.clock.soonest) + ms
  return sim.requests.ofQueue(queue, {
    call,
    voids: false,
    pledge: (_, standing) =>
      standing !== undefined && standing.until >= until
        ? standing
        : { ...since(sim, 'X14, queue paused by a handler', until), since: standing?.since ?? sim.time.now },
  })
}

function since(sim: Simulation, what: string, until: number): Pledge {
  return { what, since: sim.time.now, until }
}

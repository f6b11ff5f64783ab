import type { JobEdit } from '../../client/commands/edit.js'
import type { FlowBuilder } from '../../client/flow/flow.js'
import type { Sequence } from '../../client/sequence/sequence.js'
import type { SequenceOptions } from '../../client/sequence/write-sequence.js'
import type { QueueHandle } from '../../client/commands/queues.js'
import type { When } from '../../job/duration/duration.js'
import type { EnqueueOptions, Handle } from '../../job/enqueue.js'
import type { Mill } from '../../mill/mill-type.js'
import { CANCELLED } from './request-expectations.js'
import type { Expectation } from './request-expectations.js'
import type { Simulation } from './simulation.js'

/** Wraps a mill and records each acknowledged call; the checkers compare the store with that record. */
export function recordingMill(mill: Mill, sim: Simulation): Mill {
  const recorded = recordedVerbs(mill, sim)
  return new Proxy(mill, {
    get(target, name) {
      if (typeof name === 'string' && Object.hasOwn(recorded, name)) return recorded[name as keyof typeof recorded]
      const value: unknown = Reflect.get(target, name, target)
      return typeof value === 'function' ? (value.bind(target) as unknown) : value
    },
  })
}

type Recorded = Partial<{ readonly [Verb in keyof Mill]: unknown }>

function recordedVerbs(mill: Mill, sim: Simulation): Recorded {
  const cancel = (id: string): Promise<boolean> => {
    sim.cancelled.add(id)
    return sim.requests.ofJob(id, {
      call: () => mill.cancel(id),
      clearsExpectation: false,
      expectation: (done, current) => (done ? since(sim, CANCELLED, Infinity) : current),
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
      sim.runs.notBefore(handle.id, 0)
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
      sim.deletable.add(id)
      return mill.delete(id)
    },
    queue: (name: string) => recordingQueue(mill.queue(name), sim),
    sequence: recordedSequences(mill, sim),
    cancel,
    ...recordedChanges(mill, sim),
  }
}

/** A sequence that is started, resumed or reset may begin again; one that was paused or cancelled may not. */
function recordedSequences(mill: Mill, sim: Simulation): unknown {
  const recorded = (sequence: Sequence): Sequence => {
    const observed = (verb: 'start' | 'resume' | 'reset' | 'pause' | 'cancel', expectation?: string) => {
      const isEnding = expectation === undefined
      return (): Promise<boolean> => {
        const { id } = sequence
        if (verb === 'cancel') sim.cancelled.add(id)
        if (verb === 'reset' || verb === 'resume') sim.revivals.set(id, (sim.revivals.get(id) ?? 0) + 1)
        return sim.requests.ofJob(id, {
          call: () => sequence[verb](),
          clearsExpectation: isEnding,
          expectation: (done, current) =>
            isEnding ? undefined : (current ?? (done ? since(sim, expectation, Infinity) : undefined)),
        })
      }
    }
    return {
      id: sequence.id,
      isNew: sequence.isNew,
      start: observed('start'),
      resume: observed('resume'),
      reset: observed('reset'),
      pause: observed('pause', 'G3, paused'),
      // What the item in hand still begins within the time of an unconfirmed read is aborted.
      cancel: observed('cancel'),
      progress: () => sequence.progress(),
      output: (options) => sequence.output(options),
      result: (options) => sequence.result(options),
      watch: () => sequence.watch(),
    }
  }
  return (...args: readonly [string, (readonly unknown[])?, SequenceOptions?]) => {
    const [target, items, options] = args
    if (items === undefined) return recorded(mill.sequence(target))
    return mill.sequence(target, items, options).then((sequence) => {
      if (options?.tx === undefined) sim.acknowledged.add(sequence.id)
      return recorded(sequence)
    })
  }
}

type BulkOptions = EnqueueOptions | ((payload: unknown, index: number) => EnqueueOptions)

function recordedChanges(mill: Mill, sim: Simulation): Recorded {
  return {
    retry: (id: string) => {
      sim.revivals.set(id, (sim.revivals.get(id) ?? 0) + 1)
      sim.runs.allow(id)
      return sim.requests.ofJob(id, {
        call: () => mill.retry(id),
        clearsExpectation: true,
        expectation: () => undefined,
      })
    },
    edit: (id: string, change: JobEdit) => {
      sim.runs.notBefore(id, 0)
      // A parked job runs again when it is edited; a paused one stays so, and a finished one cannot be.
      const clearsExpectation = !KEPT_BY_EDIT.has(sim.stateOf(id))
      return sim.requests.ofJob(id, {
        call: () => mill.edit(id, change),
        clearsExpectation,
        expectation: (_, current) => current,
      })
    },
    pause: (id: string) =>
      sim.requests.ofJob(id, {
        call: () => mill.pause(id),
        clearsExpectation: false,
        expectation: (done, current) => current ?? (done ? since(sim, 'X14, paused', Infinity) : undefined),
      }),
    resume: (id: string) =>
      sim.requests.ofJob(id, { call: () => mill.resume(id), clearsExpectation: true, expectation: () => undefined }),
  }
}

const KEPT_BY_EDIT: ReadonlySet<string | undefined> = new Set(['paused', 'done', 'failed', 'cancelled'])

function recordingQueue(queue: QueueHandle, sim: Simulation): QueueHandle {
  const recorded = (call: () => Promise<void>, until: (calledAt: number) => number | undefined): Promise<void> => {
    const calledAt = Math.floor(sim.clock.soonest)
    return sim.requests.ofQueue(queue.name, {
      call,
      clearsExpectation: true,
      expectation: () => {
        const end = until(calledAt)
        return end === undefined ? undefined : since(sim, 'X14, queue paused', end)
      },
    })
  }
  return {
    name: queue.name,
    pause: () =>
      recorded(
        () => queue.pause(),
        () => Infinity,
      ),
    // Only a number of ms is checked: other forms would need a clock to be resolved.
    pauseUntil: (when) =>
      recorded(
        () => queue.pauseUntil(when),
        (calledAt) => (typeof when === 'number' ? calledAt + when : undefined),
      ),
    resume: () =>
      recorded(
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
    clearsExpectation: false,
    expectation: (_, current) =>
      current !== undefined && current.until >= until
        ? current
        : { ...since(sim, 'X14, queue paused by a handler', until), since: current?.since ?? sim.time.now },
  })
}

function since(sim: Simulation, what: string, until: number): Expectation {
  return { what, since: sim.time.now, until }
}

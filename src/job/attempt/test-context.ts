import { show } from '../../codec/show.js'
import { InvalidOptionsError, NotYetError, TransactionError } from '../../errors.js'
import type { TestContext } from './context.js'
import type { AnyJob } from '../definition/define.js'
import { isJob } from '../definition/brands.js'
import { checkEnqueueOptions } from '../definition/check-options.js'
import type { When } from '../duration/duration.js'
import type { Handle } from '../enqueue.js'
import { readLogged } from './log-text.js'
import { checkProgress } from './check-progress.js'
import { inherited } from '../definition/inheritance.js'

/** A context that records the calls of the handler, for `job.run(payload)` in a unit test. */
export function testContext(job: AnyJob, attempt = 1): TestContext {
  const logged: string[] = []
  const progressed: { done: number; total: number | undefined }[] = []
  const pausedUntil: When[] = []
  const settled: { tx: unknown; result: unknown }[] = []
  const enqueued: { job: AnyJob | string; payload: unknown; options: unknown }[] = []
  const enqueue = async (
    target: AnyJob | string,
    payload?: unknown,
    options?: unknown,
  ): Promise<Handle<never, never>> => {
    const problems = options === undefined ? [] : checkEnqueueOptions(options, 'options')
    if (problems.length > 0)
      throw new InvalidOptionsError(`job ${show(isJob(target) ? target.name : target)}`, problems)
    enqueued.push({ job: target, payload, options })
    return recordedHandle(`test-${enqueued.length}-${isJob(target) ? target.name : target}`)
  }
  return {
    id: 'test',
    job: job.name,
    attempt,
    tick: undefined,
    sequence: undefined,
    signal: new AbortController().signal,
    queue: {
      name: inherited(job, 'queue') ?? 'default',
      pauseUntil: (when) => Promise.resolve(void pausedUntil.push(when)),
    },
    log: (...parts) => void logged.push(readLogged(parts).line),
    progress: (done, total) => {
      checkProgress(done, total)
      progressed.push({ done, total })
    },
    enqueue: enqueue as TestContext['enqueue'],
    // It has no parents.
    results: () => Promise.resolve([]),
    settleIn: (tx, result) => void settled.push({ tx, result }),
    transaction: async (work) => {
      const result = work(noDatabase() as never)
      settled.push({ tx: undefined, result })
      return result
    },
    logged,
    progressed,
    pausedUntil,
    settled,
    enqueued,
  }
}

/** A recording context has no database: every access throws an error that says how to test with one. */
function noDatabase(): object {
  const refuse = (): never => {
    throw new TransactionError(
      'E_TX_UNREACHABLE',
      'ctx.transaction(): this context only records and has no database; test the job on one with testing({ jobs, store: db })',
    )
  }
  return new Proxy({}, { get: refuse, set: refuse, has: refuse })
}

/** No job was enqueued, so the methods of this handle are refused by name. */
function recordedHandle(id: string): Handle<never, never> {
  const refusal = (what: string): NotYetError =>
    new NotYetError(
      `handle.${what}() of a job enqueued under a recording context`,
      'test on a queue, with testing({ jobs }) of millrace/testing',
    )
  const refuse = (what: string) => (): Promise<never> => Promise.reject(refusal(what))
  const watch = (): never => {
    throw refusal('watch')
  }
  return { id, isNew: true, get: refuse('get'), cancel: refuse('cancel'), result: refuse('result'), watch }
}

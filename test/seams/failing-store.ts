import type { Store } from '../../src/store/store.js'
import type { TransactionStore } from '../../src/store/transaction-store.js'
import { never } from '../../src/testing/simulation/faults.js'
import type { SimProcess } from '../../src/testing/simulation/sim-process.js'
import type { SeamCalls } from './seam-calls.js'

/** A store of which one call fails. Every verb of the contract is a call. */
export function failingStore(store: Store, process: SimProcess, calls: SeamCalls): Store {
  const [groups, schedules] = [verbsOf(store.groups, process, calls), verbsOf(store.schedules, process, calls)]
  const [sequences, workflows] = [verbsOf(store.sequences, process, calls), verbsOf(store.workflows, process, calls)]
  const transactions = failingTransactions(store.transactions, process, calls)
  const verbs = verbsOf(store, process, calls)
  const failing: Store = new Proxy(store, {
    get: (target, name) => {
      // Both stores implement these roles on one object.
      if (name === 'jobs' || name === 'leases' || name === 'queues') return failing
      if (name === 'groups') return groups
      if (name === 'schedules') return schedules
      if (name === 'sequences') return sequences
      if (name === 'workflows') return workflows
      if (name === 'transactions') return transactions
      const isPassed = name === 'changes' || name === 'onHint' || name === 'readCensus' || name === 'close'
      if (!isPassed) return Reflect.get(verbs, name, verbs) as unknown
      const value: unknown = Reflect.get(target, name, target)
      return typeof value === 'function' ? (value.bind(target) as unknown) : value
    },
  })
  return failing
}

function verbsOf<T extends object>(inner: T, process: SimProcess, calls: SeamCalls): T {
  return new Proxy(inner, {
    get: (target, name) => {
      const verb: unknown = Reflect.get(target, name, target)
      if (typeof verb !== 'function') return verb
      return (...given: unknown[]) =>
        call(String(name), process, calls, () => {
          // Workers beat by their own timers here, so that each beat is a call too.
          if (name === 'startHeartbeat') return Promise.resolve(undefined)
          if (name === 'dropWorker') calls.sim.database.stopped.add(String(given[0]))
          return (verb as (...args: unknown[]) => Promise<unknown>).apply(target, given)
        })
    },
  })
}

/** What is written within a call of the caller can only be refused: its transaction would take the rest along. */
function failingTransactions(inner: TransactionStore, process: SimProcess, calls: SeamCalls): TransactionStore {
  const refusing = <T>(verb: string, run: () => T): T => {
    if (calls.enter(verb, process) !== undefined) throw calls.error(verb, 'fails before', process)
    return run()
  }
  return {
    answersLater: inner.answersLater,
    insertJobsIn: (...given) => refusing('insertJobsIn', () => inner.insertJobsIn(...given)),
    insertSequenceIn: (...given) => refusing('insertSequenceIn', () => inner.insertSequenceIn(...given)),
    sendEventIn: (...given) => refusing('sendEventIn', () => inner.sendEventIn(...given)),
    sealGroupIn: (...given) => refusing('sealGroupIn', () => inner.sealGroupIn(...given)),
    settleJobIn: (...given) => refusing('settleJobIn', () => inner.settleJobIn(...given)),
    guarded: (tx, run) => inner.guarded(tx, run),
    transact: (request) => call('transact', process, calls, () => inner.transact(request)),
  }
}

async function call<T>(verb: string, process: SimProcess, calls: SeamCalls, run: () => Promise<T>): Promise<T> {
  const fault = calls.enter(verb, process)
  if (fault === undefined) return run()
  if (fault.endsWith('before')) throw calls.error(verb, fault, process)
  const answer = await run()
  if (fault.endsWith('after')) throw calls.error(verb, fault, process)
  await (fault === 'late' ? calls.answerLate(process) : calls.answerSuspended(process))
  return process.alive ? answer : never()
}

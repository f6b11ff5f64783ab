import { expect, test } from 'vitest'
import type { Claim, ClaimedJob, Store } from '../../store/store.js'
import { UnbegunWorkflows } from './unbegun-workflows.js'

type Log = Parameters<Parameters<UnbegunWorkflows['logOf']>[1]>[0]

const [first, second] = [{ ref: 1, fence: 9 } as ClaimedJob, { ref: 2, fence: 9 } as ClaimedJob]

function unbegunIn(find: (claims: readonly Claim[]) => Promise<readonly number[]>) {
  const failed: string[] = []
  const leases = { findUnbegun: find } as Partial<Store['leases']> as Store['leases']
  const events = { storeFailed: (what: string) => void failed.push(what) }
  return { failed, unbegun: new UnbegunWorkflows({ store: { leases }, events, now: () => 5 }) }
}

function logOf(unbegun: UnbegunWorkflows, job: ClaimedJob): Promise<Log> {
  return new Promise((resolve) => unbegun.logOf(job, resolve))
}

test('what was found begins with an empty log, and an inbox as old as the read', async () => {
  const { unbegun } = unbegunIn(() => Promise.resolve([2]))
  await unbegun.find([first, second])
  expect(await logOf(unbegun, first)).toBeUndefined()
  expect(await logOf(unbegun, second)).toEqual({ run: 0, deadlineAt: null, rows: [], inbox: [], inboxAt: 5 })
})

test('what is sent while the store is read makes its answer void', async () => {
  let answer: (refs: readonly number[]) => void = () => undefined
  const { unbegun } = unbegunIn(() => new Promise((resolve) => (answer = resolve)))
  const finding = unbegun.find([first])
  unbegun.forget()
  answer([1])
  await finding
  expect(await logOf(unbegun, first)).toBeUndefined()
})

test('a read that fails is reported, and the logs are read later', async () => {
  const { unbegun, failed } = unbegunIn(() => Promise.reject(new Error('busy')))
  await unbegun.find([first])
  expect([failed, await logOf(unbegun, first)]).toEqual([['look for new workflows'], undefined])
})

test('a workflow that begins before the answer waits for it', async () => {
  let answer: (refs: readonly number[]) => void = () => undefined
  const { unbegun } = unbegunIn(() => new Promise((resolve) => (answer = resolve)))
  void unbegun.find([first])
  const log = logOf(unbegun, first)
  answer([1])
  expect(await log).toMatchObject({ rows: [] })
})

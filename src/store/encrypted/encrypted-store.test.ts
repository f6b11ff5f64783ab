import { describe, expect, test } from 'vitest'
import { ContractFixture } from '../../../test/contract/fixture.js'
import { storeContract } from '../../../test/contract/store-contract.js'
import { answer, append, ended, inbox, inHand, log, send } from '../../../test/contract/workflow-fixture.js'
import { transactionContract } from '../../../test/contract/transaction-contract.js'
import { isSealed, Keyring } from '../../job/secrets/keyring.js'
import { systemWorld } from '../../world/world.js'
import { openFile } from '../sqlite/connection/open.js'
import { SqliteStore } from '../sqlite/sqlite-store.js'
import type { SqliteDatabase } from '../sqlite/connection/driver.js'
import { encryptedStore } from './encrypted-store.js'

/** A store whose jobs are all encrypted: what is written comes back as it was, through every verb. */
async function open() {
  const world = systemWorld()
  const clock = { now: 1_800_000_000_000 }
  const file = await openFile({ target: ':memory:', durability: 'power' }, true, world)
  const store = new SqliteStore(file, world, { durability: 'power', now: () => clock.now })
  const keys = new Keyring({ keys: { k1: new Uint8Array(32) }, current: 'k1' }, () => world.ids.nonce())
  const { database } = file
  return {
    store: encryptedStore(store, { keys, encrypts: () => true }),
    inner: store,
    clock,
    database,
    openTransaction: () => {
      database.exec('begin')
      return {
        tx: database,
        commit: () => void database.exec('commit'),
        rollBack: () => void database.exec('rollback'),
      }
    },
  }
}

describe('the store contract, encrypted', () => {
  // The long random searches are about rows and not about what is in them. What the error of a sealed job says is in no group.
  for (const { name, run } of storeContract.filter(
    (each) => !/seed|page|message as it was|class and place are one group/.test(each.name),
  ))
    test(name, async () => run(await open()))
  for (const { name, run } of transactionContract) test(name, async () => run(await open()))
})

const MARKER = 'tiger-stripes-4711'
const text = (database: SqliteDatabase): string =>
  (database.prepare("select name from sqlite_master where type = 'table'").all() as { readonly name: string }[])
    .map(({ name }) => JSON.stringify(database.prepare(`select * from "${name}"`).all()))
    .join()

test('the log, the inbox, the children and the restarted input of a workflow are sealed, and read as they were written', async () => {
  const subject = await open()
  const b = new ContractFixture(subject)
  const job = await inHand(b, { payload: `"${MARKER}"` })
  const error = JSON.stringify({ name: 'Error', message: MARKER })
  const note = JSON.stringify({ log: [MARKER], beganAt: 5 })
  const child = b.job({ name: 'child', payload: `"${MARKER}"` })
  const options = { onDuplicate: 'return', keepCancelledMs: Infinity } as const
  const call = answer(1, { address: '/call:child#0', kind: 'call', no: null, value: null })
  await append(b, job, {
    rows: [answer(0, { value: `"${MARKER}"`, note }), call],
    children: [{ address: call.address, job: child, options, isAwaited: true }],
  })
  await send(b, job.id, { payload: `"${MARKER}"` })
  const claimed = (await b.claim(await b.worker(), { names: ['child'] })).jobs[0]
  expect(claimed?.payload).toBe(`"${MARKER}"`)
  if (claimed !== undefined) await b.settle(claimed, { to: 'failed', error })
  await b.store.jobs.promoteJobs(10)
  expect(text(subject.database)).not.toContain(MARKER)
  const [row] = (await log(b, job)).rows ?? []
  expect(row).toMatchObject({ value: `"${MARKER}"` })
  expect(JSON.parse(row?.note ?? '')).toEqual({ beganAt: 5, log: [MARKER] })
  expect(await inbox(b, job)).toEqual([
    ['event', 'go', `"${MARKER}"`, null],
    ['call', child.id, null, JSON.stringify({ kind: 'failed', error })],
  ])
  const restarted = { input: `"${MARKER} again"` }
  await b.settle(job, { to: 'ready', workflow: ended({ restarted, rows: [answer(2, { value: `"${MARKER}"` })] }) })
  expect(text(subject.database)).not.toContain(MARKER)
  expect((await b.read(job.id)).payload).toBe(`"${MARKER} again"`)
  await subject.store.close()
})

test('an error of a log that cannot be opened is a value that no codec reads, so that no other error is replayed', async () => {
  const subject = await open()
  const b = new ContractFixture(subject)
  const job = await inHand(b)
  await append(b, job, {
    rows: [answer(0, { value: null, error: JSON.stringify({ name: 'Error', message: MARKER }) })],
  })
  const others = new Keyring({ keys: { k2: new Uint8Array(32) }, current: 'k2' }, () => new Uint8Array(12))
  const without = encryptedStore(subject.inner, { keys: others, encrypts: () => true })
  const [kept] = await without.leases.readLogs([{ ...job, keptFence: null }])
  expect(kept?.rows?.[0]?.error).toBeNull()
  expect(isSealed(kept?.rows?.[0]?.value ?? null)).toBe(true)
  await subject.store.close()
})

test('the log of a workflow is refused without its owner, and never written as plain text', async () => {
  const { store, database } = await open()
  const none = {
    ref: 1,
    fence: 1,
    run: 0,
    rows: [answer(0, { value: MARKER })],
    taken: [],
    children: [],
    cancelled: [],
  }
  expect(() => store.leases.appendSteps([{ ...none, endsStreak: false }])).toThrow(
    'with the id and the name of its job',
  )
  expect(text(database)).not.toContain(MARKER)
  await store.close()
})

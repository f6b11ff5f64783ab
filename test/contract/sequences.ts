import assert from 'node:assert/strict'
import { decideSequence, itemAddress } from '../../src/job/rules/sequence.js'
import type { SequenceVerb } from '../../src/job/rules/sequence.js'
import type { Encoded } from '../../src/job/rules/outcome.js'
import { ITEMS_AHEAD, LIST_KEEP_MS } from '../../src/store/sequences.js'
import type { Appended, ClaimedSequence, NewStep, SequenceChanged } from '../../src/store/sequences.js'
import type { ClaimedJob, NewJob } from '../../src/store/store.js'
import { contract, only } from './fixture.js'
import type { ContractCase, ContractFixture } from './fixture.js'

/** Sequences: items written whole, a log under the fence, and the verbs of their table. */

interface Made {
  readonly start?: boolean
  readonly key?: string
  readonly group?: string
  readonly keepMs?: number
}

const payloads = (count: number): string[] => Array.from({ length: count }, (_, i) => `{"n":${i}}`)

function rowOf(b: ContractFixture, total: number, { key, group }: Made): NewJob {
  return b.job({ key: key ?? null, group, options: JSON.stringify({ sequence: { total } }) })
}

async function make(b: ContractFixture, items: readonly Encoded[], made: Made = {}): Promise<string> {
  const job = rowOf(b, items.length, made)
  const inserted = await b.store.sequences.insertSequence({
    job,
    options: { onDuplicate: 'return', keepCancelledMs: Infinity },
    last: { id: job.id, total: items.length, from: 0, payloads: items },
    start: made.start ?? true,
    empty: { result: '{"done":0}', keepMs: made.keepMs ?? Infinity },
  })
  return inserted.id
}

function change(b: ContractFixture, id: string, verb: SequenceVerb): Promise<SequenceChanged> {
  return b.store.sequences.changeSequence({ id, verb, reason: `${verb} it`, keepMs: Infinity })
}

function sequenceOf(job: ClaimedJob): ClaimedSequence {
  assert.ok(job.sequence, 'it was claimed with its position')
  return job.sequence
}

/** The row of the item that a claim is at, or of a later one. */
function step(job: ClaimedJob, given: Partial<NewStep> = {}, index = sequenceOf(job).index): NewStep {
  const { run } = sequenceOf(job)
  const row = { run, address: itemAddress(index), kind: 'item', no: index, attempt: 1, startedAt: 5, endedAt: 7 }
  return { ...row, value: `"r${index}"`, error: null, note: null, ...given }
}

function append(b: ContractFixture, job: ClaimedJob, row: NewStep, ahead = false): Promise<Appended> {
  const { list, index } = sequenceOf(job)
  const itemsFrom = ahead ? { list, index: index + 1 } : undefined
  const { ref, fence, id, name, queue } = job
  return b.store.leases.appendStep({ ref, fence, id, name, queue, step: row, endsStreak: false, itemsFrom })
}

async function progress(b: ContractFixture, id: string): Promise<readonly unknown[]> {
  const row = await b.store.sequences.readSequence(id)
  assert.ok(row, `sequence ${id} is there`)
  return [row.state, row.isUnstarted, row.requested, row.done, row.total]
}

async function output(b: ContractFixture, id: string): Promise<readonly (readonly unknown[])[]> {
  const read = await b.store.sequences.readOutput(id, 0, 1_000)
  return read?.rows.map(({ index, result }) => [index, result]) ?? []
}

async function claimOne(b: ContractFixture, worker: string): Promise<ClaimedJob> {
  return only(await b.claim(worker))
}

/** Sweeps until nothing is left to sweep. */
async function sweepAll(b: ContractFixture): Promise<void> {
  for (let left = 200; left > 0; left -= 1) if (!(await b.store.jobs.sweepRows(3)).more) return
  assert.fail('the sweep does not end')
}

/** A sequence in each state of the table, and with each request. */
const PLACES: readonly {
  readonly place: string
  readonly reach: (b: ContractFixture, worker: string) => Promise<string>
}[] = [
  { place: 'waiting', reach: (b) => make(b, payloads(2), { start: false }) },
  { place: 'running', reach: (b) => make(b, payloads(2)) },
  { place: 'in hand', reach: inHand },
  { place: 'held', reach: (b, worker) => inHand(b, worker, undefined, 0) },
  { place: 'pause requested', reach: (b, worker) => inHand(b, worker, 'pause') },
  { place: 'cancel requested', reach: (b, worker) => inHand(b, worker, 'cancel') },
  { place: 'paused', reach: (b, worker) => ended(b, worker, { to: 'paused', attempt: 0 }) },
  { place: 'retrying', reach: (b, worker) => ended(b, worker, { to: 'retrying', delayMs: 60_000, error: '{}' }) },
  { place: 'done', reach: (b, worker) => ended(b, worker, { to: 'done' }) },
  { place: 'failed', reach: (b, worker) => ended(b, worker, { to: 'failed', error: '{"name":"E"}' }) },
  { place: 'parked', reach: (b, worker) => ended(b, worker, { to: 'parked', reason: 'unreadable' }) },
  { place: 'cancelled', reach: (b, worker) => ended(b, worker, { to: 'cancelled' }) },
]

async function inHand(
  b: ContractFixture,
  worker: string,
  requested?: 'pause' | 'cancel',
  starting = 1,
): Promise<string> {
  const id = await make(b, payloads(2))
  only(await b.claim(worker, { starting }))
  if (requested !== undefined) await change(b, id, requested)
  return id
}

async function ended(
  b: ContractFixture,
  worker: string,
  end: Parameters<ContractFixture['settle']>[1],
): Promise<string> {
  const id = await make(b, payloads(2))
  await b.settle(await claimOne(b, worker), end)
  return id
}

/** What each verb gives in each place: a state, 'requested', or false. The order is start, pause, resume, cancel, reset. */
const TABLE: Readonly<Record<string, readonly (string | false)[]>> = {
  waiting: ['ready', false, false, 'cancelled', 'paused'],
  running: [false, 'paused', false, 'cancelled', 'paused'],
  'in hand': [false, 'requested', false, 'requested', 'paused'],
  held: [false, 'paused', false, 'cancelled', 'paused'],
  'pause requested': [false, false, 'requested', 'requested', 'paused'],
  'cancel requested': [false, false, false, 'requested', 'paused'],
  paused: [false, false, 'ready', 'cancelled', 'paused'],
  retrying: [false, 'paused', false, 'cancelled', 'paused'],
  done: [false, false, false, false, 'paused'],
  failed: [false, false, 'ready', false, 'paused'],
  parked: [false, false, 'ready', false, 'paused'],
  cancelled: [false, false, false, false, 'paused'],
}
const VERBS: readonly SequenceVerb[] = ['start', 'pause', 'resume', 'cancel', 'reset']

const tableCases = PLACES.map(({ place, reach }) =>
  contract(
    `every verb of a sequence that is ${place} does what the table says, and false writes nothing`,
    async (b) => {
      const worker = await b.worker()
      for (const [i, verb] of VERBS.entries()) {
        const id = await reach(b, worker)
        const [before, read] = [await progress(b, id), await b.read(id)]
        const { did, to } = await change(b, id, verb)
        const expected = TABLE[place]?.[i]
        assert.equal(did === 'no' ? false : did === 'requested' ? did : to, expected, verb)
        if (expected === false) assert.deepEqual([await progress(b, id), await b.read(id)], [before, read], verb)
        else if (expected !== 'requested') assert.equal(await b.state(id), expected, verb)
        const isWaiting = (verb === 'reset' || place === 'waiting') && (await b.state(id)) === 'paused'
        const row = await b.store.sequences.readSequence(id)
        assert.equal(row?.state === 'paused' && row.isUnstarted, isWaiting, `${verb}: it waits for start()`)
        await change(b, id, 'reset')
        assert.equal(await change(b, id, 'cancel').then(({ to: end }) => end), 'cancelled')
      }
    },
  ),
)

export const sequenceCases: readonly ContractCase[] = [
  contract('a sequence is claimed with its first item, and continues after the last recorded one', async (b) => {
    const worker = await b.worker()
    const id = await make(b, payloads(4))
    assert.deepEqual(await progress(b, id), ['ready', false, null, 0, 4])
    const first = await claimOne(b, worker)
    const { list, ...position } = sequenceOf(first)
    const expected = { run: 0, total: 4, index: 0, attempt: 0, previous: null, items: ['{"n":0}'] }
    assert.deepEqual(position, expected)
    assert.ok(list > 0)
    const appended = await append(b, first, step(first), true)
    const boundary = { held: true, requested: null, isQueuePaused: false, isAnswered: true }
    assert.deepEqual(appended, { ...boundary, items: payloads(4).slice(1) })
    assert.deepEqual(await append(b, first, step(first, {}, 1)), { ...boundary, items: [] })
    assert.deepEqual(await progress(b, id), ['running', false, null, 2, 4])
    assert.deepEqual(await output(b, id), [
      [0, '"r0"'],
      [1, '"r1"'],
    ])
    await b.settle(first, { to: 'ready', attempt: 0 })
    const { index, previous, items } = sequenceOf(await claimOne(b, worker))
    assert.deepEqual([index, previous, items], [2, '"r1"', ['{"n":2}']])
  }),

  contract('the end of the last item, its row and the end of the sequence are one write', async (b) => {
    const worker = await b.worker()
    const id = await make(b, payloads(1))
    const job = await claimOne(b, worker)
    await b.settle(job, { result: '{"done":1,"total":1}', step: step(job) })
    assert.deepEqual(await progress(b, id), ['done', false, null, 1, 1])
    assert.deepEqual(await output(b, id), [[0, '"r0"']])
  }),

  contract('a claim that is lost appends nothing, and neither does its settlement', async (b) => {
    const worker = await b.worker()
    const id = await make(b, payloads(3))
    const lost = await claimOne(b, worker)
    await b.store.leases.rescueJobs(worker, 0, [b.settled(lost, { to: 'ready', attempt: 0, streak: 1 })])
    const appended = await append(b, lost, step(lost))
    assert.deepEqual([appended.held, appended.isAnswered, appended.items], [false, false, []])
    assert.deepEqual(await b.settle(lost, { to: 'failed', step: step(lost) }), [lost.ref])
    assert.equal((await b.store.leases.readBoundary(lost)).held, false)
    assert.deepEqual([await progress(b, id), await output(b, id)], [['ready', false, null, 0, 3], []])
  }),

  contract('an appended row ends the count of crashes', async (b) => {
    const worker = await b.worker()
    const id = await make(b, payloads(3))
    const first = await claimOne(b, worker)
    await b.settle(first, { to: 'ready', attempt: 0, streak: 1, crashes: 1 })
    const again = await claimOne(b, worker)
    assert.deepEqual([again.streak, again.crashes], [1, 1])
    const { ref, fence, name, queue } = again
    await b.store.leases.appendStep({ ref, fence, id, name, queue, step: step(again), endsStreak: true })
    const { streak, crashes } = await b.read(id)
    assert.deepEqual([streak, crashes], [0, 0])
  }),

  contract('a row that is appended twice, after a lost answer, is there once', async (b) => {
    const worker = await b.worker()
    const id = await make(b, payloads(3))
    const job = await claimOne(b, worker)
    const [one, two] = [await append(b, job, step(job)), await append(b, job, step(job, { value: '"other"' }))]
    assert.deepEqual([one.isAnswered, two.isAnswered, two.held], [true, true, true])
    assert.deepEqual(await output(b, id), [[0, '"r0"']])
  }),

  contract('a failed attempt is counted in the open row of its item, and the next item begins at 0', async (b) => {
    const worker = await b.worker()
    const id = await make(b, payloads(3))
    const open = { no: null, value: null, error: '{"name":"E"}' }
    for (const attempt of [1, 2]) {
      const job = await claimOne(b, worker)
      assert.equal(sequenceOf(job).attempt, attempt - 1)
      await b.settle(job, {
        to: 'retrying',
        delayMs: 0,
        attempt,
        retries: attempt,
        step: step(job, { ...open, attempt }),
      })
      await b.store.jobs.promoteJobs(10)
    }
    assert.deepEqual([await progress(b, id), await output(b, id)], [['ready', false, null, 0, 3], []])
    const third = await claimOne(b, worker)
    assert.deepEqual([sequenceOf(third).index, sequenceOf(third).attempt], [0, 2])
    await append(b, third, step(third, { attempt: 3 }))
    await b.settle(third, { to: 'ready', attempt: 0, streak: 1 })
    const next = await claimOne(b, worker)
    assert.deepEqual([sequenceOf(next).index, sequenceOf(next).attempt, sequenceOf(next).previous], [1, 0, '"r0"'])
  }),

  contract('resume of a failed sequence takes its item again, with its attempts from 0, and its key', async (b) => {
    const worker = await b.worker()
    const id = await make(b, payloads(2), { key: 'k' })
    const job = await claimOne(b, worker)
    await append(b, job, step(job))
    const open = step(job, { no: null, value: null, error: '{"name":"E"}', attempt: 5 }, 1)
    await b.settle(job, { to: 'failed', attempt: 5, error: '{"name":"E"}', step: open })
    assert.deepEqual(await progress(b, id), ['failed', false, null, 1, 2])
    const other = await make(b, payloads(1), { key: 'k' })
    await assert.rejects(change(b, id, 'resume'), { code: 'E_DUPLICATE_KEY' })
    await assert.rejects(change(b, id, 'reset'), { code: 'E_DUPLICATE_KEY' })
    assert.equal((await progress(b, id))[0], 'failed', 'a refused verb writes nothing')
    await change(b, other, 'cancel')
    assert.equal((await change(b, id, 'resume')).to, 'ready')
    const again = await claimOne(b, worker)
    assert.deepEqual([sequenceOf(again).index, sequenceOf(again).attempt, again.retries], [1, 0, 0])
    assert.deepEqual(await output(b, id), [[0, '"r0"']])
  }),

  contract('a requested pause or cancel and a paused queue are seen with the next row', async (b) => {
    const worker = await b.worker()
    const id = await make(b, payloads(6))
    const job = await claimOne(b, worker)
    await change(b, id, 'pause')
    assert.equal((await append(b, job, step(job))).requested, 'pause')
    assert.equal((await b.store.leases.readBoundary(job)).requested, 'pause')
    await change(b, id, 'resume')
    assert.equal((await append(b, job, step(job, {}, 1))).requested, null)
    await change(b, id, 'cancel')
    assert.equal((await append(b, job, step(job, {}, 2))).requested, 'cancel')
    const { held } = await b.store.queues.pauseQueue({ queue: 'default', until: null })
    assert.equal(held, true, 'a sequence in hand may begin an item')
    assert.equal((await append(b, job, step(job, {}, 3))).isQueuePaused, true)
    assert.equal((await b.store.leases.readBoundary(job)).isQueuePaused, true)
    await b.settle(job, { to: 'ready', attempt: 0 })
    assert.deepEqual(await progress(b, id), ['cancelled', false, null, 4, 6])
  }),

  contract('a pause during the last item leaves it done, and a cancel makes it cancelled with all items', async (b) => {
    const worker = await b.worker()
    for (const [verb, end] of [
      ['pause', 'done'],
      ['cancel', 'cancelled'],
    ] as const) {
      const id = await make(b, payloads(1))
      const job = await claimOne(b, worker)
      await change(b, id, verb)
      await b.settle(job, { result: '{}', step: step(job) })
      assert.deepEqual(await progress(b, id), [end, false, null, 1, 1])
    }
  }),

  contract('a rescue carries out what was requested of a sequence', async (b) => {
    const worker = await b.worker()
    const [paused, cancelled] = [await make(b, payloads(2)), await make(b, payloads(2))]
    const { jobs } = await b.claim(worker)
    await change(b, paused, 'pause')
    await change(b, cancelled, 'cancel')
    const crashed = jobs.map((job) => b.settled(job, { to: 'ready', attempt: 0, streak: 1 }))
    await b.store.leases.rescueJobs(worker, 0, crashed)
    assert.deepEqual([await b.state(paused), await b.state(cancelled)], ['paused', 'cancelled'])
    assert.equal((await change(b, paused, 'resume')).to, 'ready')
  }),

  contract('reset ends the claim at once: nothing of the old run is written or shown any more', async (b) => {
    const worker = await b.worker()
    const id = await make(b, payloads(3), { key: 'k', group: 'g' })
    const old = await claimOne(b, worker)
    await append(b, old, step(old))
    await change(b, id, 'pause')
    assert.deepEqual((await change(b, id, 'reset')).inHand, true)
    assert.deepEqual(await progress(b, id), ['paused', true, null, 0, 3])
    assert.equal((await append(b, old, step(old, {}, 1))).held, false)
    assert.deepEqual(await b.settle(old, { step: step(old, {}, 1) }), [old.ref])
    assert.deepEqual([await output(b, id), await b.requests()], [[], []])
    assert.equal((await change(b, id, 'start')).to, 'ready')
    const again = await claimOne(b, worker)
    assert.deepEqual([sequenceOf(again).run, sequenceOf(again).index, sequenceOf(again).previous], [1, 0, null])
    await append(b, again, step(again, { value: '"new"' }))
    await sweepAll(b)
    assert.deepEqual(await output(b, id), [[0, '"new"']], 'the sweep removes the old run alone')
    const { counts } = await b.store.groups.readGroup('g')
    assert.deepEqual(
      counts.filter(({ members }) => members !== 0).map(({ state, members }) => [state, members]),
      [['running', 1]],
    )
  }),

  contract('the stored items of a sequence are read in order from any index, also after a reset', async (b) => {
    const id = await make(b, payloads(5))
    const read = (from: number, limit: number): Promise<readonly Encoded[]> =>
      b.store.sequences.readItems({ id, name: 'mail' }, from, limit)
    assert.deepEqual(await read(0, 2), payloads(2))
    assert.deepEqual(await read(3, 10), payloads(5).slice(3))
    assert.deepEqual(await read(5, 10), [])
    await change(b, id, 'reset')
    assert.deepEqual(await read(4, 1), payloads(5).slice(4))
    assert.deepEqual(await b.store.sequences.readItems({ id: await b.one(), name: 'mail' }, 0, 1), [])
  }),

  contract('a verb of a sequence says whether there is such a sequence', async (b) => {
    const plain = await b.one()
    assert.equal((await change(b, plain, 'pause')).did, 'plain')
    assert.equal((await change(b, b.ids.jobId(b.clock.now), 'pause')).did, 'gone')
    assert.equal((await b.store.sequences.readSequence(plain))?.isSequence, false)
    assert.equal(await b.store.sequences.readSequence(b.ids.jobId(b.clock.now)), undefined)
    assert.equal(await b.store.sequences.readOutput(b.ids.jobId(b.clock.now), 0, 1), undefined)
  }),

  contract('a sequence without items is done at once, also if it is not to be started', async (b) => {
    for (const start of [true, false]) {
      const id = await make(b, [], { start })
      assert.deepEqual(await progress(b, id), ['done', false, null, 0, 0].with(1, !start))
      assert.equal((await b.read(id)).result, '{"done":0}')
    }
    const gone = await make(b, [], { keepMs: 0 })
    assert.equal(await b.state(gone), 'gone')
    assert.equal((await b.claim(await b.worker())).jobs.length, 0)
  }),

  contract('the key of an unfinished sequence gives that sequence, and the items are forgotten', async (b) => {
    const first = await make(b, payloads(2), { key: 'k', start: false })
    assert.equal(await make(b, payloads(9), { key: 'k' }), first)
    assert.deepEqual(await progress(b, first), ['paused', true, null, 0, 2])
    await b.one({ key: 'plain' })
    await assert.rejects(make(b, payloads(1), { key: 'plain' }), { code: 'E_DUPLICATE_KEY' })
    const moved = b.insert([b.job({ key: 'k', due: { inMs: 60_000 } })], 'move')
    await assert.rejects(moved, { code: 'E_DUPLICATE_KEY' }, 'a schedule does not replace the items')
  }),

  contract('a list in slices is a sequence with the last of them, and is removed if that never comes', async (b) => {
    const [job, orphan] = [rowOf(b, 4, {}), rowOf(b, 4, {})]
    for (const { id } of [job, orphan]) {
      await b.store.sequences.addItems({ id, name: 'mail', total: 4, from: 0, payloads: payloads(2) })
      assert.equal(await b.store.sequences.readSequence(id), undefined, 'nothing is visible yet')
    }
    await b.store.sequences.addItems({ id: job.id, name: 'mail', total: 4, from: 2, payloads: ['"third"'] })
    await b.store.sequences.insertSequence({
      job,
      options: { onDuplicate: 'return', keepCancelledMs: Infinity },
      last: { id: job.id, total: 4, from: 3, payloads: ['"fourth"'] },
      start: true,
      empty: { result: '{}', keepMs: Infinity },
    })
    b.clock.now += LIST_KEEP_MS + 1
    await sweepAll(b)
    const claimed = await claimOne(b, await b.worker())
    const { items } = await append(b, claimed, step(claimed), true)
    assert.deepEqual(items, ['{"n":1}', '"third"', '"fourth"'])
    const late = b.store.sequences.addItems({ id: orphan.id, name: 'mail', total: 4, from: 2, payloads: ['"late"'] })
    await assert.rejects(late, /took longer to write than an hour/)
    assert.deepEqual((await b.store.readCensus()).long, {
      steps: 1,
      workflows: 1,
      lists: 1,
      items: 4,
      inbox: 0,
      leftovers: 0,
    })
  }),

  contract('items are read ahead, a bounded number and a bounded size at a time, bytes too', async (b) => {
    const worker = await b.worker()
    const many = await make(b, payloads(ITEMS_AHEAD + 5))
    const one = await claimOne(b, worker)
    assert.equal((await append(b, one, step(one), true)).items.length, ITEMS_AHEAD)
    await change(b, many, 'reset')
    const large = 'x'.repeat(700_000)
    await make(b, ['"a"', large, large, large])
    const two = await claimOne(b, worker)
    assert.equal((await append(b, two, step(two), true)).items.length, 2)
    const bytes = new Uint8Array([0, 255, 10])
    const id = await make(b, [bytes, bytes])
    const three = await claimOne(b, worker)
    assert.deepEqual(sequenceOf(three).items, [bytes])
    assert.deepEqual((await append(b, three, step(three, { value: bytes }), true)).items, [bytes])
    assert.deepEqual(await output(b, id), [[0, bytes]])
  }),

  contract('everything of a sequence is removed with its job, a bounded number of rows at a time', async (b) => {
    const worker = await b.worker()
    const ids: string[] = []
    for (const end of ['deleted', 'not kept', 'pruned', 'kept'] as const) {
      const id = await make(b, payloads(8))
      ids.push(id)
      const job = await claimOne(b, worker)
      for (const index of [0, 1, 2, 3, 4, 5, 6]) await append(b, job, step(job, {}, index))
      const keepMs = end === 'not kept' ? 0 : end === 'pruned' ? 10 : Infinity
      await b.settle(job, { keepMs, step: step(job, {}, 7) })
      if (end === 'deleted') await b.store.jobs.changeJob({ id, from: 'done', to: 'gone', keepMs: 0 })
    }
    b.clock.now += 20
    await b.prune(1)
    await sweepAll(b)
    assert.deepEqual(await Promise.all(ids.map((id) => b.state(id))), ['gone', 'gone', 'gone', 'done'])
    assert.deepEqual((await b.store.readCensus()).long, {
      steps: 8,
      workflows: 1,
      lists: 1,
      items: 8,
      inbox: 0,
      leftovers: 0,
    })
    assert.equal((await output(b, ids[3] as string)).length, 8)
  }),

  contract('a new sequence never sees the log of a deleted one', async (b) => {
    const worker = await b.worker()
    for (let turn = 0; turn < 3; turn += 1) {
      const id = await make(b, payloads(2))
      const job = await claimOne(b, worker)
      assert.deepEqual([sequenceOf(job).index, await output(b, id)], [0, []])
      await append(b, job, step(job))
      await b.settle(job, { to: 'cancelled' })
      await b.store.jobs.changeJob({ id, from: 'cancelled', to: 'gone', keepMs: 0 })
    }
  }),

  ...tableCases,
]

/** The pure table and the one above are the same: a state that the store never reaches cannot hide a wrong cell. */
assert.deepEqual(
  VERBS.map((verb) => decideSequence({ state: 'running', isUnstarted: false, requested: 'pause' }, verb) !== null),
  TABLE['pause requested']?.map((cell) => cell !== false),
)

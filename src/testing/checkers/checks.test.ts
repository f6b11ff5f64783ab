import { describe, expect, test } from 'vitest'
import type { CensusJob } from '../../store/census.js'
import type { SimulatedCensus } from './checks.js'
import { RequestExpectations } from '../simulation/request-expectations.js'
import { Checker, checkDrained } from './checks.js'
import { census, facts, checking, running, waiting } from '../../../test/support/small-census.js'
import { SimProcess } from '../simulation/sim-process.js'
import { seeded } from '../simulation/random.js'
import { VirtualTime } from '../simulation/virtual-time.js'

describe('groups', () => {
  const member: CensusJob = { ...waiting, group: 'g' }
  const group = { group: 'g', unfinished: 0, sealedAt: 1, completedAt: null }
  const counted = (state: CensusJob['state'], members: number): Partial<SimulatedCensus> => ({
    counts: [{ group: 'g', queue: 'default', state: state ?? 'ready', members }],
  })

  test('are counted as a full count counts them, and those that run as ready', () => {
    expect(checking(census([member], counted('ready', 1)))).not.toThrow()
    expect(checking(census([{ ...running, group: 'g' }], counted('ready', 1)))).not.toThrow()
    expect(checking(census([member]))).toThrow('G1: 1 members are g default ready, and none is counted')
    expect(checking(census([member], counted('ready', 2)))).toThrow('G1: 2 members are counted as g default ready')
    expect(checking(census([], counted('ready', 1)))).toThrow('G1')
    expect(checking(census([], counted('done', 1)))).not.toThrow()
  })

  test('are followed once, when they are complete', () => {
    const follower: CensusJob = { ...waiting, follows: 'g' }
    const complete = { groups: [{ ...group, completedAt: 2 }] }
    expect(checking(census([follower], complete))).not.toThrow()
    expect(checking(census([follower], { groups: [group] }))).toThrow('which is not complete')
    expect(checking(census([follower, { ...follower, id: 'b', seq: 2 }], complete))).toThrow('both follow group g')
    expect(() => checkDrained(census([], { groups: [group] }), 2_000)).toThrow('its completion was not recorded')
    expect(() => checkDrained(census([], { groups: [{ ...group, unfinished: 1 }] }), 2_000)).not.toThrow()
  })
})

describe('requested changes', () => {
  const cancel = { requests: [{ seq: 1, kind: 'cancel' as const }] }
  const pause = { requests: [{ seq: 1, kind: 'pause' as const }] }
  const after = (state: CensusJob['state']): SimulatedCensus =>
    census([{ ...running, state, fence: null, worker: 'w', attempt: 1 }])

  test('exist only beside a job that runs, and none is left at the end', () => {
    expect(checking(census([running], cancel))).not.toThrow()
    expect(checking(census([waiting], cancel))).toThrow('X7: a request to cancel exists beside a job that is ready')
    expect(checking(census([], pause))).toThrow('X14: a request to pause exists beside a job that is gone')
    expect(() => checkDrained(census([], cancel), 2_000)).toThrow('X7')
  })

  test('to cancel end in cancelled or done', () => {
    for (const state of ['done', 'cancelled'] as const)
      expect(checking(census([running], cancel), after(state))).not.toThrow()
    for (const state of ['ready', 'retrying', 'paused', 'failed', 'parked'] as const)
      expect(checking(census([running], cancel), after(state))).toThrow(
        `X7: job a was cancelled while it ran, and now is`,
      )
  })

  test('to pause keep a job from running again, and do not replace a cancel', () => {
    for (const state of ['done', 'failed', 'paused', 'parked', 'running'] as const)
      expect(checking(census([running], pause), state === 'running' ? census([running]) : after(state))).not.toThrow()
    for (const state of ['ready', 'scheduled', 'retrying'] as const)
      expect(checking(census([running], pause), after(state))).toThrow('X14: job a was to be paused')
    expect(checking(census([running], cancel), census([running], pause))).toThrow('X7: job a was cancelled, and then')
  })

  test('cancel a job only if its cancel was requested', () => {
    const checker = new Checker()
    checker.check(census([waiting]), facts())
    const gone = census([{ ...waiting, state: 'cancelled', reason: 'cancel() was called' }])
    expect(() => checker.check(gone, facts())).toThrow('X7: job a was cancelled, and no call requested it')
  })
})

describe('unique slots', () => {
  const sole: CensusJob = { ...waiting, name: 'sole', slot: 'x', while: 'unfinished' }
  const once: CensusJob = { ...sole, name: 'once' }
  const second = (of: CensusJob, createdAt: number): CensusJob => ({
    ...of,
    seq: 2,
    id: 'b',
    createdAt,
    state: 'ready',
  })
  const over: Partial<CensusJob> = { state: 'done', worker: 'w', attempt: 1 }
  const held: Partial<CensusJob> = { state: 'running', fence: 7 }

  test('hold one unfinished job', () => {
    expect(checking(census([sole]), census([{ ...sole, ...held }, second(sole, 1_100)]))).toThrow('both unfinished')
    const [before, after] = [census([{ ...sole, ...held }]), census([{ ...sole, ...over }, second(sole, 1_100)])]
    expect(checking(before, after)).not.toThrow()
  })

  test('accept no job beside one that waits, and one behind one that runs', () => {
    const behind: CensusJob = { ...sole, while: 'waiting' }
    expect(checking(census([behind]), census([behind, second(behind, 1_100)]))).toThrow('which waits there')
    const runs = { ...behind, ...held }
    expect(checking(census([runs]), census([runs, second(behind, 1_100)]))).not.toThrow()
  })

  test('have a window, which a cancelled job gives up and a replacement takes over', () => {
    const ran = [census([{ ...once, ...held }]), census([{ ...once, ...over }])]
    expect(checking(...ran, census([{ ...once, ...over }, second(once, 1_499)]))).toThrow('1 ms before its window ends')
    expect(checking(...ran, census([{ ...once, ...over }, second(once, 1_500)]))).not.toThrow()
    const off: CensusJob = { ...once, state: 'cancelled' }
    expect(checking(census([once]), census([off]), census([off, second(once, 1_100)]))).not.toThrow()
    const replaced = [census([once]), census([off, { ...second(once, 1_400), ...held }])]
    const third: CensusJob = { ...once, seq: 3, id: 'c', createdAt: 1_450 }
    const next = (createdAt: number): SimulatedCensus =>
      census([off, { ...second(once, 1_400), ...over }, { ...third, createdAt }])
    expect(checking(...replaced, next(1_499))).toThrow('1 ms before')
    expect(checking(...replaced, next(1_500))).not.toThrow()
  })

  test('bound how far a job is rescheduled', () => {
    const latest: CensusJob = { ...once, name: 'latest', while: 'waiting' }
    expect(checking(census([{ ...latest, dueAt: 1_500 }]))).not.toThrow()
    expect(checking(census([{ ...latest, dueAt: 1_501 }]))).toThrow('E6: job a was rescheduled by 501 ms')
  })
})

test('the work of a job is there exactly once when it is done, and not before', () => {
  const bank: CensusJob = { ...running, name: 'bank' }
  const done: CensusJob = { ...bank, state: 'done', fence: null, worker: 'w', attempt: 1 }
  const works = (times: number): Partial<SimulatedCensus> => ({ works: [{ id: 'a', times }] })
  expect(checking(census([bank]), census([done], works(1)))).not.toThrow()
  expect(checking(census([bank], works(1)))).toThrow('I5: job a is running, and its work was done 1 times')
  expect(checking(census([bank]), census([done]))).toThrow('I5: job a is done, and its work was done 0 times')
  expect(checking(census([bank]), census([done], works(2)))).toThrow('I5: job a is done, and its work was done 2 times')
  expect(checking(census([], works(1)))).toThrow('I5: the work of job a was done 1 times, and the job is not there')
})

test('a job that was rolled back is not there', () => {
  const run = (): void => new Checker().check(census([waiting]), facts({ undone: new Set(['a']) }))
  expect(run).toThrow('G2: job a is there')
})

describe('an acknowledged call', () => {
  const time = new VirtualTime(0)
  const process = new SimProcess('w', time, seeded(1), 0)
  const expectation = { what: 'X14, paused', since: 0, until: 50 }
  let now = 0
  const begins = (expectations: RequestExpectations, at: number) => () => {
    now = at
    return expectations.begins('a', 'default', process, now)
  }
  const paused = { call: () => Promise.resolve(true), clearsExpectation: false, expectation: () => expectation }
  const resumed = { call: () => Promise.resolve(true), clearsExpectation: true, expectation: () => undefined }

  test('holds until its time, or until another command ends it', async () => {
    const expectations = new RequestExpectations(() => now)
    await expectations.ofJob('a', paused)
    expect(begins(expectations, 49)).toThrow(
      'X14, paused: job a of queue default begins 49 ms after that was acknowledged',
    )
    expect(begins(expectations, 50)).not.toThrow()
    const resuming = expectations.ofJob('a', resumed)
    expect(begins(expectations, 10)).not.toThrow()
    await resuming
    await expectations.ofQueue('default', paused)
    expect(begins(expectations, 10)).toThrow('X14')
  })

  test('promises nothing when the call failed, when another call was in flight, or when the process acts on an outdated read', async () => {
    const expectations = new RequestExpectations(() => now)
    await expectations.ofJob('a', { ...paused, call: () => Promise.reject(new Error('lost')) }).catch(() => undefined)
    expect(begins(expectations, 10)).not.toThrow()
    await Promise.all([expectations.ofJob('a', resumed), expectations.ofJob('a', paused)])
    expect(begins(expectations, 10)).not.toThrow()
    await expectations.ofJob('a', paused)
    process.noteLate()
    expect(begins(expectations, 10)).not.toThrow()
  })
})

import { describe, expect, test } from 'vitest'
import type { CurrentPause } from '../store/queues.js'
import type { TickRow } from '../store/schedules.js'
import type { ClaimedJob, LeasedJob, NewJob, SettledJob } from '../store/store.js'
import { logTo, silentLog } from '../world/log.js'
import type { Logger } from '../world/log.js'
import { engineEvents } from './engine-events.js'
import type { EngineEvents, ShownAttempt } from './engine-events.js'
import { eventsInContext } from './events-in-context.js'
import { logHeld } from './log-lines.js'

type Line = readonly [level: string, message: string, fields: object]

function createEvents(
  isLevelEnabled?: Logger['isLevelEnabled'],
  isGone?: () => boolean,
): { events: EngineEvents; lines: Line[] } {
  const lines: Line[] = []
  const at =
    (level: string) =>
    (fields: object, message: string): void =>
      void lines.push([level, message, fields])
  const logger = { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
  const log = logTo(isLevelEnabled === undefined ? logger : { ...logger, isLevelEnabled })
  return { lines, events: engineEvents(log, isGone) }
}

const named = { id: 'i', name: 'mail', queue: 'q' }
const fields = { id: 'i', job: 'mail', queue: 'q' }
const settled = (to: SettledJob['to'], change: Partial<SettledJob> = {}): SettledJob =>
  ({ ...named, to, attempt: 2, delayMs: null, error: null, reason: null, ...change }) as SettledJob
const error = JSON.stringify({ name: 'RangeError', message: 'no' })
const err = new RangeError('no')
const running: ShownAttempt = {
  id: 'i',
  job: 'mail',
  attempt: 2,
  claimed: { queue: 'q' },
  lastActivity: undefined,
  within: undefined,
}

describe('one line a transition', () => {
  test.each<[string, (events: EngineEvents) => void, Line]>([
    ['ready', (e) => e.enqueued([{ ...named, due: { inMs: 0 } } as NewJob]), ['debug', 'ready mail', fields]],
    [
      'scheduled, by a delay',
      (e) => e.enqueued([{ ...named, due: { inMs: 60_000 } } as NewJob]),
      ['debug', 'scheduled mail in 1 m', fields],
    ],
    [
      'scheduled, by an instant',
      (e) => e.enqueued([{ ...named, due: { at: 5 } } as NewJob]),
      ['debug', 'scheduled mail', fields],
    ],
    [
      'running',
      (e) => e.began({ ...named, attempt: 1 } as ClaimedJob),
      ['debug', 'running mail', { ...fields, attempt: 2 }],
    ],
    ['done', (e) => e.settled(settled('done'), 12.34), ['info', 'done mail', { ...fields, attempt: 2, ms: 12.3 }]],
    [
      'done, with a remark',
      (e) => e.settled(settled('done', { reason: 'treated as done: 409' }), 0),
      ['info', 'done mail (treated as done: 409)', { ...fields, attempt: 2, ms: 0 }],
    ],
    [
      'retrying',
      (e) => e.settled(settled('retrying', { error, delayMs: 2_000 }), 5),
      ['warn', 'retrying mail in 2.0 s', { ...fields, attempt: 2, ms: 5, err }],
    ],
    [
      'failed',
      (e) => e.settled(settled('failed', { error }), 5),
      ['error', 'failed mail', { ...fields, attempt: 2, ms: 5, err }],
    ],
    [
      'parked',
      (e) => e.settled(settled('parked', { reason: 'its process died 3 times' }), undefined),
      ['error', 'parked mail (its process died 3 times)', { ...fields, attempt: 2 }],
    ],
    [
      'snoozed',
      (e) => e.settled(settled('scheduled', { delayMs: 1_000 }), 5, running),
      ['info', 'snoozed mail for 1.0 s', { ...fields, attempt: 2, ms: 5 }],
    ],
    ['given back', (e) => e.settled(settled('ready'), 5), ['debug', 'ready mail', { ...fields, attempt: 2, ms: 5 }]],
    ['cancelled', (e) => e.changed(named, 'cancelled', 'why'), ['info', 'cancelled mail (why)', fields]],
    ['deleted', (e) => e.changed(named, 'gone', undefined), ['info', 'deleted mail', fields]],
    [
      'slow',
      (e) => e.slow({ ...running, lastActivity: 'log: half-way' }, 61_000.4),
      ['error', 'slow mail: running for 1 m 1 s (last log: half-way)', { ...fields, attempt: 2, ms: 61_000 }],
    ],
    [
      'given back while it ran',
      (e) => e.settled(settled('ready', { attempt: 1 }), 5, running),
      ['info', 'gave back mail (the worker stopped before it ended; it runs again)', { ...fields, attempt: 2 }],
    ],
    [
      'enqueued after others',
      (e) => e.enqueued([{ ...named, due: { inMs: 0 }, after: [{ id: 'a' }, { id: 'b' }] } as unknown as NewJob]),
      ['debug', 'enqueued mail after 2 jobs', fields],
    ],
    [
      'rescued',
      (e) => e.rescued('w', [{}, {}] as LeasedJob[], 1),
      [
        'warn',
        'rescued 2 jobs of worker w, which died; jobs that are not parked run again',
        { worker: 'w', jobs: 2, parked: 1 },
      ],
    ],
    [
      'rescued, without a parked one',
      (e) => e.rescued('w', [{}] as LeasedJob[], 0),
      ['warn', 'rescued 1 job of worker w, which died; jobs that are not parked run again', { worker: 'w', jobs: 1 }],
    ],
    [
      'a dead worker without jobs',
      (e) => e.rescued('w', [], 0),
      ['info', 'worker w died; it held no jobs', { worker: 'w' }],
    ],
    [
      'scheduled, with no parents',
      (e) => e.enqueued([{ ...named, due: { inMs: 0 }, after: [] } as unknown as NewJob]),
      ['debug', 'ready mail', fields],
    ],
    [
      'snoozed, without a time',
      (e) => e.settled(settled('scheduled'), undefined, running),
      ['info', 'snoozed mail for 0 ms', { ...fields, attempt: 2 }],
    ],
    [
      'an end without an attempt',
      (e) => e.settled(settled('cancelled', { attempt: 0, reason: 'it expired' }), undefined),
      ['info', 'cancelled mail (it expired)', fields],
    ],
    [
      'an end of the running attempt',
      (e) => e.settled(settled('done', { attempt: 7 }), 1, running),
      ['info', 'done mail', { ...fields, attempt: 2, ms: 1 }],
    ],
    ['paused', (e) => e.changed(named, 'paused', undefined), ['info', 'paused mail', fields]],
    ['blocked', (e) => e.changed(named, 'blocked', undefined), ['debug', 'blocked mail', fields]],
    [
      'scheduled again, with a reason and no delay',
      (e) => e.changed(named, 'scheduled', 'resumed'),
      ['debug', 'scheduled mail (resumed)', fields],
    ],
    [
      'scheduled again, by an end without an attempt',
      (e) => e.settled(settled('scheduled', { attempt: 0 }), undefined),
      ['debug', 'scheduled mail', fields],
    ],
    [
      'ready again after a delay that does not matter',
      (e) => e.settled(settled('ready', { delayMs: 5 }), 5),
      ['debug', 'ready mail', { ...fields, attempt: 2, ms: 5 }],
    ],
    ['a cancel of a running job', (e) => e.requested(named, 'cancel'), ['info', 'cancelling mail (it runs)', fields]],
    ['a pause of a running job', (e) => e.requested(named, 'pause'), ['info', 'pausing mail (it runs)', fields]],
    ['a resume of a running job', (e) => e.requested(named, 'resume'), ['info', 'resuming mail (it runs)', fields]],
    ['a resumed queue', (e) => e.queuePaused('q', undefined), ['info', 'resumed queue q', { queue: 'q' }]],
    [
      'a paused queue',
      (e) => e.queuePaused('q', { until: null } as CurrentPause),
      ['info', 'paused queue q', { queue: 'q' }],
    ],
    [
      'a queue paused for a time',
      (e) => e.queuePaused('q', { until: 0 } as CurrentPause),
      ['info', 'paused queue q until 1970-01-01T00:00:00.000Z', { queue: 'q' }],
    ],
    [
      'a tick that ran',
      (e) => e.ticked('r', [{ at: 0, outcome: 'ran', reason: null, job: 'j' } as TickRow]),
      ['debug', 'tick of r at 1970-01-01T00:00:00.000Z: ran', { schedule: 'r' }],
    ],
    [
      'a tick that was skipped',
      (e) => e.ticked('r', [{ at: 0, outcome: 'skipped', reason: 'overlap', job: null } as TickRow]),
      ['info', 'tick of r at 1970-01-01T00:00:00.000Z: skipped (overlap)', { schedule: 'r' }],
    ],
    [
      'a schedule that was recovered',
      (e) => e.scheduleRecovered('r', 60_000),
      [
        'warn',
        'schedule "r" was stalled: a process whose clock was 1 m ahead had moved its next tick, and no longer fires it; it continues from now',
        { schedule: 'r', aheadMs: 60_000 },
      ],
    ],
    [
      'an error after a job had settled itself',
      (e) => e.threwAfterwards(running, { name: 'RangeError', message: 'no' }),
      ['error', 'mail threw after it had settled itself; it stays done', { ...fields, attempt: 2, err }],
    ],
    [
      'slow, without a last word',
      (e) => e.slow(running, 1_000),
      ['error', 'slow mail: running for 1.0 s', { ...fields, attempt: 2, ms: 1_000 }],
    ],
    [
      'a hook of an enqueue that failed',
      (e) => e.hookFailed('enqueue', { name: 'mail' }, new Error('no')),
      ['error', 'hooks.enqueue failed; no job is affected', { job: 'mail', err: new Error('no') }],
    ],
    [
      'a lost claim',
      (e) => e.lost(named),
      ['warn', 'lost mail: its claim was lost, and this attempt is not recorded', fields],
    ],
    [
      'a lost lease',
      (e) => e.lost({ worker: 'w', why: 'it was declared dead' }),
      ['warn', 'worker w lost its lease: it was declared dead; results of its jobs are not recorded', { worker: 'w' }],
    ],
    [
      'what it logs, with fields beside its own',
      (e) => e.logLine(running, { fields: { orderId: 7, id: 'theirs' }, message: 'hello', line: '' }),
      ['info', 'mail: hello', { ...fields, attempt: 2, orderId: 7, 'log.id': 'theirs' }],
    ],
    [
      'a hook that failed',
      (e) => e.hookFailed('settle', named, new Error('no metrics')),
      ['error', 'hooks.settle failed; no job is affected', { id: 'i', job: 'mail', err: new Error('no metrics') }],
    ],
  ])('%s', (_, send, line) => {
    const { events, lines } = createEvents()
    send(events)
    expect(lines).toStrictEqual([line])
  })

  test.each([
    [{ databaseMs: -60_000, machineMs: -60_000 }, 'warn', /^the database's clock was set back by 1 m: scheduled jobs/],
    [{ databaseMs: 60_000, machineMs: 0 }, 'info', /^the database's clock went forward by 1 m, or .*: jobs that were/],
    [
      { databaseMs: 0, machineMs: -2_000 },
      'info',
      /^this machine's clock was set back by 2.0 s, and the database's was not/,
    ],
    [{ databaseMs: 0, machineMs: 2_000 }, 'info', /^this machine's clock was set forward by 2.0 s,/],
  ])('a step of a clock, %o', (step, level, text) => {
    const { events, lines } = createEvents()
    events.clockStepped(step)
    expect(lines).toEqual([[level, expect.stringMatching(text), step]])
  })

  test('debug lines are not built for a logger that does not want them, also when its level changes', () => {
    let level = 'info'
    const { events, lines } = createEvents((asked) => asked === level || asked !== 'debug')
    const began = (): void => events.began({ ...named, attempt: 0 } as ClaimedJob)
    const all = (): void => {
      began()
      events.enqueued([{ ...named, due: { inMs: 0 }, after: [{ id: 'a' }] } as unknown as NewJob])
      events.changed(named, 'ready', undefined)
      events.ticked('r', [{ at: 0, outcome: 'ran', reason: null, job: 'j' } as TickRow])
    }
    all()
    expect(lines).toEqual([])
    level = 'debug'
    all()
    expect(lines).toHaveLength(4)
  })

  test('a line at a higher level follows one that is not logged', () => {
    const { events, lines } = createEvents((asked) => asked !== 'debug')
    const tick = { at: 0, byHand: false, firedAt: 0, reason: null, job: null }
    const outcomes = ['ran', 'skipped', 'caught up'] as const
    events.ticked(
      'r',
      outcomes.map((outcome) => ({ ...tick, outcome })),
    )
    events.settled(settled('done'), 1)
    expect(lines.map(([, message]) => message)).toEqual([
      'tick of r at 1970-01-01T00:00:00.000Z: skipped',
      'tick of r at 1970-01-01T00:00:00.000Z: caught up',
      'done mail',
    ])
  })

  test('a repeated fault of a hook is logged once, and texts that differ are all logged', () => {
    const { events, lines } = createEvents()
    for (let n = 0; n < 5; n += 1) events.hookFailed('settle', named, new Error('same'))
    expect(lines).toHaveLength(1)
    for (let n = 0; n < 150; n += 1) events.hookFailed('settle', named, new Error(`${n}`))
    expect(lines).toHaveLength(151)
  })

  test('of a fault that repeats among others, a hundred texts are remembered', () => {
    const { events, lines } = createEvents()
    const fail = (from: number, to: number): void => {
      for (let n = from; n < to; n += 1) events.storeFailed('claim', new Error(`${n}`))
    }
    fail(0, 100)
    fail(0, 100)
    expect(lines).toHaveLength(100)
    fail(100, 101)
    fail(0, 1)
    expect(lines).toHaveLength(102)
  })

  test('failures after the store is gone are not logged', () => {
    let isGone = false
    const { events, lines } = createEvents(undefined, () => isGone)
    events.storeFailed('claim', new Error('busy'))
    isGone = true
    events.storeFailed('rescue', new Error('gone'))
    expect(lines.map(([, message]) => message)).toEqual(['cannot claim for now; it is tried again'])
  })

  test('a repeated fault is logged once, and again after a hundred times', () => {
    const { events, lines } = createEvents()
    for (let i = 0; i < 201; i += 1) events.storeFailed('claim', new Error('busy'))
    events.storeFailed('settle', new Error('busy'))
    expect(lines.map(([, message]) => message.split(' ')[1])).toEqual(['claim', 'claim', 'claim', 'settle'])
  })
})

test.each([
  [1, 'worker w holds 1 job: mail 0. '],
  [5, 'worker w holds 5 jobs: mail 0, mail 1, mail 2, mail 3, mail 4. '],
  [7, 'worker w holds 7 jobs: mail 0, mail 1, mail 2, mail 3, mail 4 and 2 more. '],
])('of %i jobs that another worker holds, up to five are named', (jobs, text) => {
  const lines: Line[] = []
  const info = (shown: object, message: string): void => void lines.push(['info', message, shown])
  const log = logTo({ debug: info, info, warn: info, error: info })
  const held = Array.from({ length: jobs }, (_, n) => ({ id: `${n}`, name: 'mail' }))
  logHeld(log, { worker: 'w', jobs: held, leaseMs: 60_000, until: 0 })
  const shown = { worker: 'w', jobs, until: '1970-01-01T00:00:00.000Z' }
  const end = 'If it was killed, they run again in 1 m, when its lease ends'
  expect(lines).toEqual([['info', text + end, shown]])
})

describe('events in the context of the job', () => {
  const where: string[] = []
  let here = 'nowhere'
  const within: ShownAttempt['within'] = (call) => {
    here = 'inside'
    try {
      return call()
    } finally {
      here = 'nowhere'
    }
  }
  const note = (): void => void where.push(here)
  const events = eventsInContext({ ...engineEvents(silentLog), settled: note, slow: note })

  test('are all there', () => {
    expect(Object.keys(events).sort()).toEqual(Object.keys(engineEvents(silentLog)).sort())
  })

  test('ends and slow runs are logged with the captured context of the job in place', () => {
    where.length = 0
    events.settled(settled('done'), 1, { ...running, within })
    events.settled(settled('done'), 1, running)
    events.settled(settled('parked'), undefined)
    events.slow({ ...running, within }, 1)
    events.slow(running, 1)
    expect(where).toEqual(['inside', 'nowhere', 'nowhere', 'inside', 'nowhere'])
  })

  test('are logged once, whatever the captured stores do', () => {
    where.length = 0
    const throwing = (): never => {
      throw new Error('broken')
    }
    const throwingAfter: ShownAttempt['within'] = (call) => {
      call()
      return throwing()
    }
    events.settled(settled('done'), 1, { ...running, within: throwing })
    events.settled(settled('done'), 1, { ...running, within: throwingAfter })
    expect(where).toEqual(['nowhere', 'nowhere'])
  })
})

describe('a schedule whose ticks get no job', () => {
  const tick = { at: 0, byHand: false, firedAt: 0 }
  const skipped = {
    ...tick,
    outcome: 'skipped',
    reason: 'after: no such job: p',
    job: null,
    advice: 'keep it',
  } as const
  const ran = { ...tick, outcome: 'ran', reason: null, job: 'j' } as const

  test('is warned of once, with what to do, and once more when it has run in between', () => {
    const { events, lines } = createEvents(() => false)
    for (const ticks of [[skipped], [skipped], [ran], [skipped]]) events.ticked('r', ticks)
    const text =
      'schedule "r" skipped its tick at 1970-01-01T00:00:00.000Z, and skips those to come: after: no such job: p. What to do: keep it'
    const line: Line = ['warn', text, { schedule: 'r' }]
    expect(lines.filter(([level]) => level === 'warn')).toEqual([line, line])
  })

  test('is warned of once more when one of several ticks has run in between', () => {
    const { events, lines } = createEvents(() => false)
    const overlapped = { ...tick, outcome: 'skipped', reason: 'overlap', job: null } as const
    for (const ticks of [[skipped], [ran, overlapped], [skipped]]) events.ticked('r', ticks)
    expect(lines.filter(([level]) => level === 'warn')).toHaveLength(2)
  })

  test('is not warned of while its last tick needs no advice', () => {
    const { events, lines } = createEvents()
    const overlapped = { ...tick, outcome: 'skipped', reason: 'overlap', job: null } as const
    events.ticked('r', [])
    events.ticked('r', [skipped, overlapped])
    expect(lines.filter(([level]) => level === 'warn')).toEqual([])
  })

  test('is remembered among a thousand others', () => {
    const { events, lines } = createEvents(() => false)
    const warned = (): number => lines.filter(([level]) => level === 'warn').length
    for (let n = 0; n < 1_000; n += 1) events.ticked(`r${n}`, [skipped])
    events.ticked('r0', [skipped])
    expect(warned()).toBe(1_000)
    for (const schedule of ['r1000', 'r0']) events.ticked(schedule, [skipped])
    expect(warned()).toBe(1_002)
  })
})

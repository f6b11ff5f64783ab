import { describe, expect, test } from 'vitest'
import type { ClaimedJob, LeasedJob, NewJob, SettledJob } from '../store/store.js'
import { logTo, silentLog } from '../world/log.js'
import type { Logger } from '../world/log.js'
import { engineEvents } from './engine-events.js'
import type { EngineEvents, ShownAttempt } from './engine-events.js'
import { eventsInContext } from './events-in-context.js'

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
    expect(lines).toEqual([line])
  })

  test('debug lines are not built for a logger that does not want them, also when its level changes', () => {
    let level = 'info'
    const { events, lines } = createEvents((asked) => asked === level || asked !== 'debug')
    const began = (): void => events.began({ ...named, attempt: 0 } as ClaimedJob)
    began()
    expect(lines).toEqual([])
    level = 'debug'
    began()
    expect(lines).toHaveLength(1)
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
    for (let i = 0; i < 250; i += 1) events.storeFailed('claim', new Error('busy'))
    events.storeFailed('settle', new Error('busy'))
    expect(lines.map(([, message]) => message.split(' ')[1])).toEqual(['claim', 'claim', 'claim', 'settle'])
  })
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

  test('ends and slow runs are logged with the captured context of the job in place', () => {
    where.length = 0
    events.settled(settled('done'), 1, { ...running, within })
    events.settled(settled('done'), 1, running)
    events.settled(settled('parked'), undefined)
    events.slow({ ...running, within }, 1)
    expect(where).toEqual(['inside', 'nowhere', 'nowhere', 'inside'])
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
})

import { describe, expect, test } from 'vitest'
import type { ClaimedJob, NewJob, SettledJob } from '../store/store.js'
import { logTo, silentLog } from '../world/log.js'
import type { Logger } from '../world/log.js'
import { engineEvents } from './engine-events.js'
import type { EngineEvents, Shown } from './engine-events.js'
import { toldInContext } from './in-context.js'

type Line = readonly [level: string, message: string, fields: object]

function bench(isLevelEnabled?: Logger['isLevelEnabled']): { events: EngineEvents; lines: Line[] } {
  const lines: Line[] = []
  const at =
    (level: string) =>
    (fields: object, message: string): void =>
      void lines.push([level, message, fields])
  const logger = { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
  return { lines, events: engineEvents(logTo(isLevelEnabled === undefined ? logger : { ...logger, isLevelEnabled })) }
}

const named = { id: 'i', name: 'mail', queue: 'q' }
const fields = { id: 'i', job: 'mail', queue: 'q' }
const settled = (to: SettledJob['to'], change: Partial<SettledJob> = {}): SettledJob =>
  ({ ...named, to, attempt: 2, delayMs: null, error: null, reason: null, ...change }) as SettledJob
const error = JSON.stringify({ name: 'RangeError', message: 'no' })
const running: Shown = {
  id: 'i',
  job: 'mail',
  attempt: 2,
  claimed: { queue: 'q' },
  lastWord: undefined,
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
      ['debug', 'running mail', { ...fields, tries: 2 }],
    ],
    ['done', (e) => e.settled(settled('done'), 12.34), ['info', 'done mail', { ...fields, tries: 2, ms: 12.3 }]],
    [
      'done, with a remark',
      (e) => e.settled(settled('done', { reason: 'treated as done: 409' }), 0),
      ['info', 'done mail (treated as done: 409)', { ...fields, tries: 2, ms: 0 }],
    ],
    [
      'retrying',
      (e) => e.settled(settled('retrying', { error, delayMs: 2_000 }), 5),
      ['warn', 'retrying mail in 2.0 s', { ...fields, tries: 2, ms: 5, error: 'RangeError: no' }],
    ],
    [
      'failed',
      (e) => e.settled(settled('failed', { error }), 5),
      ['error', 'failed mail', { ...fields, tries: 2, ms: 5, error: 'RangeError: no' }],
    ],
    [
      'parked',
      (e) => e.settled(settled('parked', { reason: 'its process died 3 times' }), undefined),
      ['error', 'parked mail (its process died 3 times)', { ...fields, tries: 2 }],
    ],
    [
      'snoozed',
      (e) => e.settled(settled('scheduled', { delayMs: 1_000 }), 5),
      ['debug', 'scheduled mail in 1.0 s', { ...fields, tries: 2, ms: 5 }],
    ],
    ['given back', (e) => e.settled(settled('ready'), 5), ['debug', 'ready mail', { ...fields, tries: 2, ms: 5 }]],
    ['cancelled', (e) => e.changed(named, 'cancelled', 'why'), ['info', 'cancelled mail (why)', fields]],
    ['deleted', (e) => e.changed(named, 'gone', undefined), ['info', 'deleted mail', fields]],
    [
      'slow',
      (e) => e.slow({ ...running, lastWord: 'log: half-way' }, 61_000.4),
      ['error', 'slow mail: running for 1 m 1 s', { ...fields, tries: 2, ms: 61_000, last: 'log: half-way' }],
    ],
    ['what it logs', (e) => e.logLine(running, 'hello'), ['info', 'mail: hello', { ...fields, tries: 2 }]],
    [
      'a hook that failed',
      (e) => e.hookFailed('settle', named, new Error('no metrics')),
      [
        'error',
        'hooks.settle failed; nothing depends on it, and work goes on',
        { id: 'i', job: 'mail', error: 'no metrics' },
      ],
    ],
  ])('%s', (_, tell, line) => {
    const { events, lines } = bench()
    tell(events)
    expect(lines).toEqual([line])
  })

  test('debug lines are not made for a logger that does not want them, also when it changes its mind', () => {
    let level = 'info'
    const { events, lines } = bench((asked) => asked === level || asked !== 'debug')
    const began = (): void => events.began({ ...named, attempt: 0 } as ClaimedJob)
    began()
    expect(lines).toEqual([])
    level = 'debug'
    began()
    expect(lines).toHaveLength(1)
  })

  test('a fault that repeats is said when it is new, and again after a hundred times', () => {
    const { events, lines } = bench()
    for (let i = 0; i < 250; i += 1) events.troubled('claim', new Error('busy'))
    events.troubled('settle', new Error('busy'))
    expect(lines.map(([, message]) => message.split(' ')[1])).toEqual(['claim', 'claim', 'claim', 'settle'])
  })
})

describe('told in context', () => {
  const where: string[] = []
  let here = 'nowhere'
  const within: Shown['within'] = (call) => {
    here = 'inside'
    try {
      return call()
    } finally {
      here = 'nowhere'
    }
  }
  const note = (): void => void where.push(here)
  const events = toldInContext({ ...engineEvents(silentLog), settled: note, slow: note })

  test('ends and slow runs are told with what the job captured in place', () => {
    where.length = 0
    events.settled(settled('done'), 1, { ...running, within })
    events.settled(settled('done'), 1, running)
    events.settled(settled('parked'), undefined)
    events.slow({ ...running, within }, 1)
    expect(where).toEqual(['inside', 'nowhere', 'nowhere', 'inside'])
  })

  test('are told once, whatever the store does', () => {
    where.length = 0
    const throwing = (): never => {
      throw new Error('broken')
    }
    const throwingAfter: Shown['within'] = (call) => {
      call()
      return throwing()
    }
    events.settled(settled('done'), 1, { ...running, within: throwing })
    events.settled(settled('done'), 1, { ...running, within: throwingAfter })
    expect(where).toEqual(['nowhere', 'nowhere'])
  })
})

import { expect, test } from 'vitest'
import { DEMO_NOW, JOBS, QUEUES, RETRYING, RUNNING, STEPS, WORKFLOW } from '../demo/frames.js'
import { lostBanner, liveMark, railLinks, tabTitle } from '../frame/model.js'
import { jumpChoices } from '../frame/jump.js'
import { bulkLine, exampleText, previewLines } from '../parts/act/bulk-lines.js'
import { jobActs, likelyAct } from '../parts/act/job-act-list.js'
import { placeGraph } from '../parts/graph-layout.js'
import { backfillArguments, tickCell } from './recurring/computed.js'
import { changedArguments, editableText, jsonProblem } from './job/edit-arguments.js'
import { alreadyRequested, errorLines, facts, outsideLinks, whyText } from './job/computed.js'
import { fieldsOf, payloadOf } from './enqueue/computed.js'
import { itemCells } from './groups/computed.js'
import { jobTimeline, stepTimeline } from './job/timeline.js'
import { emptyText } from './queues/computed.js'
import { attemptText, keptRows, reachedText, removableTerms, stateChips } from './jobs/computed.js'
import { mutedWith, retryableExample, unmuted } from './failures/computed.js'
import { pauseChoices } from './queue/computed.js'
import { tiles } from './overview/computed.js'
import { rangeOf } from './jobs/selection.js'

const plain = (text: string): string => text.replaceAll('\u202f', ' ')
const NOW = DEMO_NOW
const [billing, reports, , mail] = QUEUES as [
  (typeof QUEUES)[0],
  (typeof QUEUES)[0],
  (typeof QUEUES)[0],
  (typeof QUEUES)[0],
]

test('a queue says when it is empty, that it grows, or that it cannot know', () => {
  expect(plain(emptyText(billing, NOW, 'UTC'))).toBe('2 h 10 m')
  expect(emptyText(mail, NOW, 'UTC')).toBe('grows by 40/min')
  expect(emptyText(reports, NOW, 'UTC')).toBe('after 18:01')
  expect(emptyText({ ...billing, emptyInMs: null }, NOW, 'UTC')).toBe('–')
  expect(emptyText({ ...billing, waiting: { n: 0, exact: true } }, NOW, 'UTC')).toBe('now')
})

test('rows stay in the order of the first sight; one that has left the view is dimmed', () => {
  const [a, b] = JOBS as [(typeof JOBS)[0], (typeof JOBS)[0]]
  const kept = keptRows([b.id, a.id], { [a.id]: a, [b.id]: b }, { [a.id]: { ...a, state: 'ready' } })
  expect(kept.map(({ line, hasLeft }) => [line.id, line.state, hasLeft])).toEqual([
    [b.id, b.state, true],
    [a.id, 'ready', false],
  ])
})

test('a state chip replaces the state of the search and keeps the rest', () => {
  const chips = stateChips('state:failed,parked queue:mail', null)
  expect(chips.filter(({ isCurrent }) => isCurrent).map(({ state }) => state)).toEqual(['parked', 'failed'])
  expect(chips.find(({ state }) => state === 'done')?.q).toBe('state:done queue:mail')
  expect(chips[0]?.q).toBe('queue:mail')
})

test('a search without a match offers itself less each term, quoted terms as one', () => {
  expect(removableTerms('state:failed key:"a b"')).toEqual([
    { term: 'state:failed', without: 'key:"a b"' },
    { term: 'key:"a b"', without: 'state:failed' },
  ])
})

test('a stopped search says how far it came', () => {
  expect(reachedText({ scanned: 18_400, reachedAt: NOW - 60_000 }, NOW, 'UTC')).toBe(
    'Searched back to 14:30 (18.4k jobs read).',
  )
  expect(reachedText({ scanned: 5, reachedAt: null }, NOW, 'UTC')).toBe('')
})

test('a state that is not counted has no number', () => {
  const counts = stateChips('', null).map(({ count }) => count)
  expect(counts).toEqual(['', ...Array.from({ length: 10 }, () => '…')])
})

test('the attempt that runs is named, and none is one of fewer', () => {
  expect(attemptText({ state: 'running', attempt: 0, attemptMax: 26 })).toBe('1/26')
  expect(attemptText({ state: 'retrying', attempt: 1, attemptMax: 26 })).toBe('1/26')
  expect(attemptText({ state: 'running', attempt: 3, attemptMax: 2 })).toBe('4')
  expect(attemptText({ state: 'failed', attempt: 3, attemptMax: null })).toBe('3')
})

test('what waits but is not ready has no time until empty, and no job is called due', () => {
  const fields = {
    span: '1h',
    failed: { n: 0, sinceDeploy: null },
    waiting: { n: 3, exact: true },
    longestWait: null,
    slots: { busy: 0, all: 4 },
    ready: 0,
    emptyInMs: null,
    donePerMinute: 0,
    series: { done: [] },
  } as unknown as Parameters<typeof tiles>[0]
  const textsOf = (given: typeof fields) =>
    tiles(given, NOW, 'UTC')
      .filter(({ name }) => name === 'Empty in' || name === 'Longest wait')
      .map(({ number, note }) => [number, note])
  expect(textsOf(fields)).toEqual([
    ['–', 'no job is due'],
    ['–', 'no job is ready'],
  ])
  expect(textsOf({ ...fields, waiting: { n: 0, exact: true } })).toEqual([
    ['–', 'no job waits'],
    ['now', 'no backlog'],
  ])
})

test('a first try of a cause takes a job that a retry would run', () => {
  const [a, b] = JOBS as [(typeof JOBS)[0], (typeof JOBS)[0]]
  const of = (first: 'done' | 'failed', second: 'done' | 'failed') =>
    retryableExample({ order: ['a', 'b'], rows: { a: { ...a, state: first }, b: { ...b, state: second } } })
  expect([of('done', 'failed'), of('done', 'done')]).toEqual(['b', undefined])
})

test('an example of a bulk names its title, key, error and id', () => {
  const [row] = JOBS as [(typeof JOBS)[0]]
  const error = { name: 'CardError', message: 'declined', code: null }
  expect(exampleText({ ...row, id: '01980f2c-1', job: 'charge', title: 'Order 1', key: 'o-1', error })).toBe(
    'charge · Order 1 · key o-1 · CardError · 01980f2c',
  )
  expect(exampleText({ ...row, id: '01980f2c-1', job: 'charge', title: null, key: null, error: null })).toBe(
    'charge · 01980f2c',
  )
})

test('a range is selected in the order of the table, in both directions', () => {
  expect(rangeOf(['a', 'b', 'c', 'd'], 'd', 'b')).toEqual(['b', 'c', 'd'])
  expect(rangeOf(['a'], 'gone', 'a')).toEqual(['a'])
})

test('the actions of a state that do not apply give the reason, and the likeliest one applies', () => {
  const acts = jobActs('done')
  expect(acts.filter(({ unavailable }) => unavailable === undefined).map(({ label }) => label)).toEqual(['Delete'])
  expect(acts[0]?.unavailable).toBe('This job is done: it cannot do this.')
  expect((['failed', 'paused', 'scheduled', 'running'] as const).map((state) => likelyAct(state)?.verb)).toEqual([
    'job.retry',
    'job.resume',
    'job.runNow',
    'job.cancel',
  ])
})

test('the time line has a lane for each attempt, and no bar leaves it', () => {
  const { lanes, folds } = jobTimeline(RETRYING, NOW, 'UTC', true)
  expect(lanes.map(({ name }) => name)).toEqual(['attempt 1', 'attempt 2'])
  const bars = lanes.flatMap(({ bars: each }) => each)
  expect(bars.every(({ x, width }) => x >= 0 && width > 0 && x + width <= 100.5)).toBe(true)
  expect(bars.at(-1)?.isDashed).toBe(true)
  expect(folds).toHaveLength(1)
})

test('the waterfall indents branches and dashes what waits', () => {
  const { lanes } = stepTimeline(STEPS, WORKFLOW, NOW, 'UTC', true, 'stock')
  expect(lanes.map(({ name, depth }) => [name, depth])).toEqual([
    ['load-order', 0],
    ['checks', 0],
    ['stock', 1],
    ['card-check', 1],
    ['cool-off', 0],
    ['approved', 0],
  ])
  expect(lanes.at(-1)?.bars[0]?.isDashed).toBe(true)
  expect(lanes.find(({ isOpen }) => isOpen)?.name).toBe('stock')
})

test('parents are left of children, and no two nodes overlap', () => {
  const node = (id: string, layer: number) => ({ id, job: id, title: null, state: 'ready' as const, layer })
  const { nodes, edges } = placeGraph({
    nodes: [node('p', -1), node('x', 0), node('a', 1), node('b', 1)],
    edges: [
      ['p', 'x'],
      ['x', 'a'],
      ['x', 'gone'],
    ],
  })
  const x = (id: string): number => nodes.find((each) => each.id === id)?.x ?? Number.NaN
  expect(x('p')).toBeLessThan(x('x'))
  expect(x('a')).toBe(x('b'))
  expect(new Set(nodes.map((each) => `${each.x} ${each.y}`)).size).toBe(4)
  expect(edges).toHaveLength(2)
})

test('frames of the app come first in a stack, frames of packages are folded, causes are in words', () => {
  const { frames, folded, causes } = errorLines(RETRYING.lastError as NonNullable<typeof RETRYING.lastError>)
  expect(frames.map(({ isOurs }) => isOurs)).toEqual([true, false])
  expect(folded).toHaveLength(2)
  expect(causes).toEqual(['HttpError: HTTP 402 from api.pay'])
})

test('a link template is filled with encoded values, and one that lacks a value or is no http link is left out', () => {
  const job = { ...RETRYING, queue: 'a/b', trace: null }
  const links = [
    { name: 'logs', url: 'https://logs.example/?q={queue}' },
    { name: 'trace', url: 'https://trace.example/{trace}' },
    { name: 'bad', url: 'javascript:alert({id})' },
  ]
  expect(outsideLinks(links, job)).toEqual([{ name: 'logs', href: 'https://logs.example/?q=a%2Fb' }])
})

test('an edit sends only what was changed, and says what is wrong', () => {
  expect(changedArguments({ priority: 0 }, { priority: '5', delay: '', payload: '' }, NOW)).toEqual({
    args: { priority: 5 },
    lines: ['priority 0 → 5'],
    problem: undefined,
  })
  expect(changedArguments({ priority: 0 }, { priority: '1.5', delay: '', payload: '' }, NOW).problem).toBe(
    'The priority must be a whole number, got "1.5".',
  )
  expect(changedArguments({ priority: 0 }, { priority: '0', delay: '10', payload: '' }, NOW).args).toEqual({
    dueAt: NOW + 600_000,
  })
  expect(jsonProblem('{"a":')).toMatch(/^The payload is not JSON: /)
})

test('a form is made from an object schema only, and names the field that is wrong', () => {
  expect(fieldsOf({ type: 'array' })).toBeUndefined()
  const fields = fieldsOf({
    type: 'object',
    required: ['n'],
    properties: { n: { type: 'integer' }, on: { type: 'boolean' }, at: {} },
  })
  expect(fields?.map(({ kind }) => kind)).toEqual(['number', 'boolean', 'json'])
  expect(payloadOf(fields ?? [], { n: 'x', on: 'true' }).problems).toEqual({ n: 'n: expected a number, got "x"' })
  expect(JSON.parse(payloadOf(fields ?? [], { n: '3', on: 'true', at: '[1]' }).payload)).toEqual({
    n: 3,
    on: true,
    at: [1],
  })
  expect(payloadOf(fields ?? [], {}).problems).toEqual({ n: 'n is required.' })
})

test('a preview names the count, the states and what is left alone', () => {
  const lines = previewLines(
    {
      id: 'p',
      verb: 'bulk.cancel',
      count: { n: 412, exact: true },
      states: { ready: { n: 400, exact: true }, running: { n: 12, exact: true } },
      untouched: { n: 3, exact: true },
      examples: [],
      asOf: NOW,
      mustType: false,
    },
    'UTC',
  )
  expect(lines).toEqual({
    title: 'Cancel 412 jobs?',
    states: '400 ready and 12 running. For example:',
    scope: 'Jobs made after 14:31:07 are not included. 3 that match are in a state that it does not touch.',
    confirm: 'Cancel 412 jobs',
    count: 412,
    isDangerous: true,
  })
})

test('a bulk says how many it skipped, and why', () => {
  const fields = {
    id: 'b',
    verb: 'bulk.retry',
    actor: 'a',
    state: 'stopped',
    startedAt: 0,
    endedAt: 1,
    total: { n: 400, exact: true },
    changed: 388,
    held: 3,
    moved: 1,
    error: null,
    examples: [],
  } as const
  expect(bulkLine(fields).text).toBe(
    'Retry, stopped: 388 of 400; skipped: 3 held by their key and 1 had left their state.',
  )
})

test('items of a long sequence share cells, and the one that failed is marked', () => {
  const cells = itemCells({ done: 8, total: 80, state: 'failed' })
  expect(cells.map(({ kind }) => kind).slice(7, 10)).toEqual(['done', 'failed', 'waiting'])
  expect(itemCells({ done: 0, total: 10_000, state: 'running' })).toHaveLength(500)
  expect(itemCells({ done: 0, total: 0, state: 'done' })).toEqual([])
})

test('a skipped tick has its reason and no link', () => {
  const cell = tickCell(
    {
      at: NOW,
      outcome: 'skipped',
      reason: 'the run before had not ended',
      job: null,
      state: null,
      firedAt: NOW,
      tookMs: null,
    },
    NOW,
    'UTC',
  )
  expect(cell).toMatchObject({ sign: '⊘', href: undefined, title: '14:31:07 skipped: the run before had not ended' })
})

test('a backfill needs two instants in order', () => {
  expect(backfillArguments('', '').problem).toBe('Choose both instants.')
  expect(backfillArguments('2026-11-02T00:00', '2026-11-01T00:00').problem).toBe(
    'The second instant must be after the first.',
  )
  expect(backfillArguments('2026-11-01T00:00', '2026-11-02T00:00').problem).toBeUndefined()
})

test('a pause until tomorrow ends at 08:00 of the viewer’s clock', () => {
  const [, , tomorrow] = pauseChoices(NOW)
  expect(new Date(tomorrow?.until ?? 0).getHours()).toBe(8)
})

test('a muted cause is hidden for a day', () => {
  const muted = mutedWith({ old: NOW - 1 }, 'a', NOW)
  expect(muted).toEqual({ a: NOW + 86_400_000 })
  const row = { fingerprint: 'a' } as Parameters<typeof unmuted>[0][number]
  expect([unmuted([row], muted, NOW + 1), unmuted([row], muted, NOW + 86_400_000)]).toEqual([[], [row]])
})

test('an id leads to its job, a name to its queue, other words to a search', () => {
  expect(jumpChoices(RETRYING.id, QUEUES, []).map(({ href }) => href)).toEqual([`#/job/${RETRYING.id}`])
  expect(jumpChoices('bil', QUEUES, []).map(({ href }) => href)).toEqual(['#/queues/billing', '#/jobs?q=bil'])
})

test('a gap of the stream is shown at once; after 3 s the mark has the time, after 15 s there is a banner', () => {
  const lost = (ms: number) => [
    liveMark({ kind: 'lost', since: 0 }, false, NOW, ms, 'UTC').text,
    lostBanner({ kind: 'lost', since: 0 }, NOW, ms, 'UTC'),
  ]
  expect(lost(0)).toEqual(['reconnecting', undefined])
  expect(lost(2_999)).toEqual(['reconnecting', undefined])
  expect(lost(3_000)).toEqual(['as of 14:31:07', undefined])
  expect(lost(15_000)[1]).toBe('No connection since 14:31:07. The page shows data from then. Actions are disabled.')
})

test('the title and the rail show what needs action', () => {
  const health = {
    verdict: { kind: 'bad', problems: 2, text: [] },
    nav: { failed: { n: 412, exact: true }, workersMissing: 0, findings: 2 },
  } as unknown as Parameters<typeof tabTitle>[1]
  expect(tabTitle('failures', health, 'shop')).toBe('✕ 2 · Failures · shop')
  const links = railLinks('job', health, 'viewer')
  expect(links.filter(({ count }) => count !== '').map(({ page, count }) => `${page} ${count}`)).toEqual([
    'failures 412',
    'health 2',
  ])
  expect(links.filter(({ isCurrent }) => isCurrent).map(({ page }) => page)).toEqual(['jobs'])
  expect(links.map(({ page }) => page)).not.toContain('audit')
})

test('a request of a running job is in its sentence, and its button says so', () => {
  const running = { ...RUNNING, requested: 'pause' } as const
  expect(whyText(running, '41 s')).toBe('It has run for 41 s. A pause is requested: it stops after this attempt.')
  expect(alreadyRequested(running, 'job.pause')).toBe('A pause is requested already.')
  expect(alreadyRequested(running, 'job.cancel')).toBeUndefined()
  expect(facts(running).find(({ name }) => name === 'progress')?.value).toBe('3 of 10')
})

test('a payload is offered for editing only where JSON has all of it', () => {
  const value = { is: 'object', entries: [['n', 1]] } as const
  const shown = { value, text: '{ "n": 1 }', bytes: 10, isCut: false, isRedacted: false }
  expect(editableText(shown)).toBe('{ "n": 1 }')
  const date = { is: 'object', entries: [['at', { is: 'tag', tag: 'Date', text: '2026' }]] } as const
  const lossy = [{ ...shown, isCut: true }, { ...shown, isRedacted: true }, { ...shown, value: date }, undefined]
  expect(lossy.map(editableText)).toEqual(['', '', '', ''])
})

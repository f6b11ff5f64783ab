import { describe, expect, test } from 'vitest'
import { category, job } from './define.js'
import { checkEnqueueOptions, checkJobOptions, checkName } from './check-options.js'

const enqueue = (options: unknown, path = 'options'): string[] =>
  checkEnqueueOptions(options, path).map((p) => `${p.path} ${p.message}`)
const define = (options: unknown): string[] => checkJobOptions(options).map((p) => `${p.path} ${p.message}`)

/** The only problem. */
function only(problems: string[]): string {
  expect(problems).toHaveLength(1)
  return problems[0] as string
}

describe('the options of an enqueue', () => {
  test.each<[string, unknown]>([
    ['nothing', {}],
    [
      'everything',
      {
        title: 'For {to}',
        labels: ['a', 'b'],
        queue: 'mail',
        priority: -5,
        key: 'order-1',
        onDuplicate: 'replace',
        in: '5m',
        retry: { limit: Infinity, backoff: { start: '1s', factor: 1.5, max: '1h' }, jitter: 0 },
        timeout: Infinity,
        expires: new Date(),
        meta: { anything: 1 },
      },
    ],
    ['an instant', { at: '2026-11-01T08:00:00Z' }],
    ['a title of 500 characters with a NUL', { title: '\u0000'.repeat(500) }],
    ['16 labels of 100 characters', { labels: Array.from({ length: 16 }, (_, i) => `${i}`.padEnd(100, 'x')) }],
    ['a key of 500 characters', { key: 'k'.repeat(500) }],
    ['the highest priority', { priority: 1_000_000 }],
    ['a name of 200 characters', { queue: 'q'.repeat(200) }],
    ['no retries', { retry: { limit: 0, backoff: 'fixed' } }],
    ['exponential retries', { retry: { backoff: 'exponential', jitter: 1 } }],
    ['the smallest factor', { retry: { backoff: { factor: 1 } } }],
    ['the largest factor', { retry: { backoff: { factor: 100 } } }],
    ['a timeout of 1 ms', { timeout: 1 }],
    ['an expiry after a while', { expires: '5m' }],
    ['an instant in another century', { at: new Date('2099-01-01T00:00:00Z'), expires: '2199-01-01T00:00:00Z' }],
    [
      'everything undefined',
      { title: undefined, in: undefined, at: undefined, key: undefined, onDuplicate: undefined },
    ],
  ])('may be %s', (_, options) => {
    expect(enqueue(options)).toEqual([])
  })

  test.each<[string, unknown, RegExp]>([
    ['title', 5, /^options\.title must be text of at most 500 characters, got 5$/],
    ['title', ['x'], /^options\.title must be text of at most 500 characters, got an Array$/],
    ['title', 'x'.repeat(501), /^options\.title must be text of at most 500/],
    ['labels', 'a', /^options\.labels must be an array of at most 16 texts, got "a"; did you mean \["a"\]\?$/],
    ['labels', 5, /^options\.labels must be an array of at most 16 texts, got 5$/],
    ['labels', Array(17).fill('a'), /^options\.labels must be at most 16, got 17$/],
    ['labels', ['a', ''], /^options\.labels\[1\] must have 1 to 100 characters, got 0$/],
    ['labels', ['x'.repeat(101)], /^options\.labels\[0\] must have 1 to 100 characters, got 101$/],
    ['labels', [5], /^options\.labels\[0\] must be text, got 5$/],
    ['labels', ['a\u0000'], /^options\.labels\[0\] must not have control characters/],
    ['labels', ['\ud800'], /^options\.labels\[0\] must be well-formed Unicode/],
    ['queue', '', /^options\.queue must have 1 to 200 characters, got 0$/],
    ['queue', 'q'.repeat(201), /got 201$/],
    ['queue', 5, /^options\.queue must be text, got 5$/],
    ['queue', 'a\nb', /control characters, got "a\\nb"$/],
    ['queue', 'a\udfff', /well-formed Unicode/],
    ['priority', 1.5, /^options\.priority must be a whole number from -1000000 to 1000000, got 1\.5$/],
    ['priority', '1', /got "1"; did you mean 1\?$/],
    ['priority', 'x1', /got "x1"$/],
    ['priority', '1x', /got "1x"$/],
    ['priority', 'high', /got "high"$/],
    ['priority', [1], /got an Array$/],
    ['priority', -1_000_001, /got -1000001$/],
    ['priority', NaN, /got NaN$/],
    ['priority', 1_000_001, /got 1000001$/],
    ['key', '', /^options\.key must have 1 to 500 characters, got 0$/],
    ['key', 7, /^options\.key must be text, got 7$/],
    ['key', 'k'.repeat(501), /got 501$/],
    ['key', '\u0000', /control characters, got "[^;]*$/],
    ['key', 'order-7\n', /control characters, got "order-7\\n"; did you mean "order-7"\?$/],
    ['key', 'a\ud83d', /well-formed Unicode/],
    ['in', '5 minutes', /^options\.in must be a duration/],
    ['in', -1, /cannot be negative/],
    ['in', '1M', /^options\.in must be a duration/],
    ['in', 'P1M', /months|vary|varies/],
    ['in', new Date(), /^options\.in must be a duration/],
    ['in', 1e13, /did you mean a Date\?/],
    ['in', null, /got null/],
    ['at', 'tomorrow', /^options\.at must be/],
    ['at', new Date(NaN), /invalid/],
    ['at', '2026-11-01T08:00:00', /has no zone/],
    ['expires', 'later', /^options\.expires must be/],
    ['expires', -5, /^options\.expires must be/],
    ['timeout', 'x', /^options\.timeout must be a duration/],
    ['timeout', 0, /^options\.timeout must be 1 ms or more, got 0$/],
    ['timeout', '0s', /^options\.timeout must be 1 ms or more, got "0s"$/],
    ['timeout', -Infinity, /^options\.timeout must be a duration/],
    ['retry', 5, /^options\.retry must be an object, got 5; did you mean \{ limit: 5 \}\?$/],
    ['retry', null, /^options\.retry must be an object, got null$/],
    ['retry', 'often', /^options\.retry must be an object, got "often"$/],
    ['retry', { jitter: -0.1 }, /^options\.retry\.jitter must be a number from 0 to 1, got -0\.1$/],
    ['retry', { jitter: '0.5' }, /^options\.retry\.jitter must be a number from 0 to 1, got "0\.5"$/],
    ['retry', { backoff: null }, /^options\.retry\.backoff must be "exponential", .*, got null$/],
    ['retry', { backoff: 'soon' }, /^options\.retry\.backoff must be "exponential", .*, got "soon"$/],
    ['retry', { backoff: { factor: 100.5 } }, /^options\.retry\.backoff\.factor must be a number from 1 to 100/],
    ['retry', { backoff: { factor: '2' } }, /^options\.retry\.backoff\.factor must be a number .*, got "2"$/],
    ['retry', { limit: -1 }, /^options\.retry\.limit must be a whole number of 0 or more, got -1$/],
    ['retry', { limit: 1.5 }, /got 1\.5$/],
    ['retry', { jitter: 2 }, /^options\.retry\.jitter must be a number from 0 to 1, got 2$/],
    ['retry', { backoff: 'linear' }, /^options\.retry\.backoff must be "exponential", "fixed" or/],
    ['retry', { backoff: { start: 'x' } }, /^options\.retry\.backoff\.start must be a duration/],
    ['retry', { backoff: { factor: 0.5 } }, /^options\.retry\.backoff\.factor must be a number from 1 to 100/],
    ['retry', { backoff: { begin: '1s' } }, /^options\.retry\.backoff\.begin is not an option/],
    ['retry', { limt: 1 }, /^options\.retry\.limt is not an option; did you mean "limit"\?$/],
    ['retry', { when: () => true }, /has a function, which cannot be stored/],
    ['retry', { backoff: () => 1 }, /has a function, which cannot be stored/],
  ])('are refused for a wrong %s: %#', (name, value, message) => {
    expect(only(enqueue({ [name]: value }))).toMatch(message)
  })

  test('are refused for an unknown onDuplicate', () => {
    expect(only(enqueue({ key: 'k', onDuplicate: 'ignore' }))).toBe(
      'options.onDuplicate must be "return" or "reject" or "replace", got "ignore"',
    )
  })

  test('are refused for an onDuplicate without a key', () => {
    expect(only(enqueue({ onDuplicate: 'reject' }))).toBe('options.onDuplicate needs a key to be a duplicate of')
    expect(only(enqueue({ onDuplicate: 'reject' }, ''))).toBe('onDuplicate needs a key to be a duplicate of')
  })

  test.each([
    ['x', /^options\.unique must be \{ by, for, while, onDuplicate \} or false, got "x"; did you mean \{ by: … \}\?$/],
    [
      true,
      /^options\.unique must be \{ by, for, while, onDuplicate \} or false, got true; did you mean \{\}, by the whole payload\?$/,
    ],
    [[], /^options\.unique must be \{ by/],
    [null, /^options\.unique must be \{ by, for, while, onDuplicate \} or false, got null$/],
    [{ by: Array(17).fill('a') }, /^options\.unique\.by must name 1 to 16 fields, got 17;/],
    [{ By: 'a' }, /^options\.unique\.By is not an option; did you mean "by"\?$/],
    [{ by: 5 }, /^options\.unique\.by must be a field of the payload, a list of them, or a function, got 5$/],
    [{ by: '' }, /^options\.unique\.by must have 1 to 200 characters, got 0$/],
    [{ by: 'a..b' }, /^options\.unique\.by must have a name on each side of a dot, got "a\.\.b"$/],
    [{ by: [] }, /^options\.unique\.by must name 1 to 16 fields, got 0; leave it out for the whole payload$/],
    [
      { by: ['a', 3] },
      /^options\.unique\.by\[1\] must be the path of a field of the payload, as in "order\.id", got 3$/,
    ],
    [{ for: 'soon' }, /^options\.unique\.for must be a duration/],
    [{ for: 0 }, /^options\.unique\.for must be 1 ms or more, got 0$/],
    [{ while: 'running' }, /^options\.unique\.while must be "unfinished" or "waiting", got "running"$/],
    [{ onDuplicate: 'return' }, /^options\.unique\.onDuplicate must be "ignore" or .*, got "return"$/],
  ])('are refused for a wrong unique: %#', (unique, message) => {
    expect(only(enqueue({ unique }))).toMatch(message)
  })

  test.each([
    [{}],
    [false],
    [{ by: 'a.b', for: Infinity, while: 'waiting', onDuplicate: 'reschedule' }],
    [{ by: ['a', 'b'] }],
    [{ by: Array(16).fill('a') }],
    [{ by: () => 1 }],
    [{ for: 1 }],
  ])('may have unique: %#', (unique) => {
    expect(enqueue({ unique })).toEqual([])
  })

  test('are refused for both in and at', () => {
    expect(only(enqueue({ in: '1h', at: new Date() }))).toBe('options has both in and at; give one of them')
  })

  test.each(['limit', 'rate'])('are refused for %s, which belongs to the job', (name) => {
    expect(only(enqueue({ [name]: 'x' }))).toMatch(`options.${name} is not an option; it belongs to the job`)
  })

  test('are refused for a tx that is no object; the store checks the rest', () => {
    expect(only(enqueue({ tx: 5 }))).toBe('options.tx must be the handle of your open transaction, got 5')
    expect(only(enqueue({ tx: null }))).toBe('options.tx must be the handle of your open transaction, got null')
    for (const tx of [{}, () => 1, undefined]) expect(enqueue({ tx })).toEqual([])
  })

  test.each([
    ['titel', 'title'],
    ['lables', 'labels'],
    ['prioriy', 'priority'],
    ['onduplicate', 'onDuplicate'],
    ['expire', 'expires'],
    ['retrys', 'retry'],
  ])('with %s are refused with the near spelling %s', (given, meant) => {
    expect(only(enqueue({ [given]: 'x' }))).toContain(`did you mean ${JSON.stringify(meant)}?`)
  })

  test('have all their problems reported at once, with the index in a bulk', () => {
    const options = { titel: 'x', priority: 1.5, retry: { limit: -1, jitter: 9 }, in: 'x', group: '' }
    const all = enqueue(options, 'options[3]')
    expect(all.map((p) => p.split(' ')[0])).toEqual([
      'options[3].titel',
      'options[3].priority',
      'options[3].retry.limit',
      'options[3].retry.jitter',
      'options[3].in',
      'options[3].group',
    ])
  })

  test.each([null, 5, 'x', [], true])('must be an object: %#', (value) => {
    expect(only(enqueue(value))).toMatch(/^options must be an object/)
  })

  test.each([
    [new Date(), /got a Date; did you mean \{ at: … \}\?$/],
    ['5m', /got "5m"; did you mean \{ in: "5m" \}\?$/],
    ['high', /got "high"$/],
  ])('are suggested where a time is given instead: %#', (value, message) => {
    expect(only(enqueue(value))).toMatch(message)
  })

  test('are refused for too many labels, with their number', () => {
    expect(only(enqueue({ labels: Array(17).fill('a') }))).toMatch(/got .*17/)
  })

  test('have every wrong label reported, not only the first', () => {
    const [problem] = enqueue({ labels: ['', 5] })
    expect(problem).toContain('[0]')
    expect(enqueue({ labels: ['', 5] }).join('\n')).toContain('[1]')
  })
})

describe('the options of a job', () => {
  const schema = { '~standard': { version: 1, vendor: 'us', validate: (value: unknown) => ({ value }) } }

  test.each<[string, unknown]>([
    ['a handler alone', { run: () => 1 }],
    [
      'everything',
      {
        description: 'Charges a card once',
        run: () => 1,
        input: schema,
        queue: 'billing',
        is: [category('payments')],
        priority: 3,
        retry: { limit: 10, backoff: () => '1s', jitter: 1, when: () => true },
        timeout: '30s',
        keep: { done: '1d', failed: Infinity, cancelled: 0 },
        treatAsDone: () => false,
        labels: ['a'],
        codec: { encode: String, decode: String },
        title: () => 'x',
      },
    ],
    ['a schema that is a function, as arktype makes them', { run: () => 1, input: Object.assign(() => 1, schema) }],
    ['parents by a function', { run: () => 1, after: () => [] }],
    ['keep none', { run: () => 1, keep: 'none' }],
    ['keep as one duration', { run: () => 1, keep: '1s' }],
    ['keep as a number of ms', { run: () => 1, keep: 5000 }],
    ['keep Infinity', { run: () => 1, keep: Infinity }],
    ['not-yet parts at what they are anyway', { run: () => 1, executor: 'loop' }],
  ])('may be %s', (_, options) => {
    expect(define(options)).toEqual([])
  })

  test.each<[string, unknown, RegExp]>([
    ['run', 'x', /^run must be a function or lazy\(…\), got "x"$/],
    ['run', null, /^run must be a function/],
    ['run', function* () {}, /^run must not be a generator function/],
    ['run', (function* () {})(), /^run must be a function or lazy/],
    ['after', 5, /^after /],
    ['input', 'text', /^input must be a Standard Schema/],
    ['input', {}, /^input must be a Standard Schema/],
    ['input', null, /^input must be a Standard Schema/],
    ['input', { '~standard': {} }, /^input must be a Standard Schema/],
    ['accepts', true, /^accepts must be a function, got true$/],
    ['is', category('x'), /^is must be an array of categories/],
    ['is', [job('j', () => 1)], /^is must hold categories made by category\(\), got an Object at \[0\]$/],
    ['is', [category('x'), 'y'], /got "y" at \[1\]$/],
    ['retry', { when: true }, /^retry\.when must be a function/],
    ['retry', { backoff: 5 }, /^retry\.backoff must be/],
    ['timeout', 'soon', /^timeout must be a duration/],
    ['retry', 3, /^retry must be an object, got 3; did you mean \{ limit: 3 \}\?$/],
    ['retry', false, /^retry must be an object, got false; did you mean \{ limit: 0 \}\?$/],
    ['retry', { backoff: 1000 }, /^retry\.backoff must be .* got 1000; did you mean \{ start: 1000 \}\?$/],
    ['retry', { backoff: { type: 'fixed' } }, /^retry\.backoff\.type is not an option; write backoff: "exponential"/],
    ['priority', '5', /^priority must be a whole number .* got "5"; did you mean 5\?$/],
    ['labels', 'mail', /^labels must be an array .* got "mail"; did you mean \["mail"\]\?$/],
    ['is', category('x'), /did you mean \[x\]\?$/],
    [
      'keep',
      'all',
      /^keep must be a duration like "7d", Infinity, "none" or \{ done, cancelled, failed \}, got "all"$/,
    ],
    ['keep', -1, /^keep must be a duration .*, got -1$/],
    ['keep', null, /^keep must be a duration .*, got null$/],
    ['keep', [], /^keep must be a duration .*, got an Array$/],
    ['keep', false, /^keep must be a duration .*, got false; did you mean "none"\?$/],
    ['keep', { done: 'x' }, /^keep\.done must be a duration/],
    ['keep', { doen: '1d' }, /^keep\.doen is not an option; did you mean "done"\?$/],
    ['treatAsDone', 'yes', /^treatAsDone must be a function/],
    ['codec', {}, /^codec must be a codec with encode and decode/],
    ['codec', null, /^codec must be a codec/],
    ['codec', { encode: String }, /^codec must be a codec/],
    ['codec', { decode: String }, /^codec must be a codec/],
    ['codec', Object.assign(() => 1, { encode: String, decode: String }), /^codec must be a codec .*, got a function/],
    ['title', 5, /^title must be text/],
    ['description', 5, /^description must be text/],
    ['queue', '', /^queue must have 1 to 200 characters/],
    ['labels', 'a', /^labels must be an array/],
    ['priority', 0.5, /^priority must be a whole number/],
  ])('are refused for a wrong %s: %#', (name, value, message) => {
    expect(only(define({ [name]: value }))).toMatch(message)
  })

  test.each(['partition', 'capture', 'minVersion'])('are refused for %s, which is not yet built', (name) => {
    expect(only(define({ [name]: { x: 1 } }))).toMatch(`${name} is not yet part of this version; until then: `)
  })

  test('are refused for accepts beside input, which would not be called', () => {
    const both = define({ run: () => 1, input: schema, accepts: () => true })
    expect(only(both)).toMatch(/^accepts is not called when there is input/)
  })

  test('have all their problems reported at once', () => {
    expect(define({ rnu: 1, queue: '', timeout: 'x', rate: {} }).map((p) => p.split(' ')[0])).toEqual([
      'rnu',
      'queue',
      'timeout',
      'rate.max',
      'rate.per',
    ])
  })
})

describe('a category', () => {
  // A job does not inherit a schema, a title or accepts, so a category that has one is a mistake.
  test.each(['input', 'accepts', 'title'])('is refused with %s, which only a job can have', (name) => {
    const value = name === 'input' ? { '~standard': { validate: () => ({ value: 1 }) } } : () => true
    expect(() => category('c', { [name]: value } as object)).toThrow(name)
  })
})

test('a category is refused for an option that is not yet built, or is that of another library', () => {
  expect(() => category('c', { capture: {} } as object)).toThrow('capture is not yet part of this version')
  expect(() => category('c', { attempts: 3 } as object)).toThrow(/attempts is not an option; .*retry/)
})

describe('a name', () => {
  test.each([
    'a',
    'send-email',
    'großes Ünïcode 日本 🎉',
    '__proto__',
    'constructor',
    "'; drop table millrace_jobs; --",
    ' ',
  ])('may be %j', (name) => {
    expect(checkName('name', name)).toEqual([])
  })

  test.each<unknown>(['', 'x'.repeat(201), 'a\u0000', 'a\u007f', '\ud800', 5, null, undefined, {}])(
    'number %# is refused',
    (name) => {
      expect(checkName('name', name)).toMatchObject([{ path: 'name' }])
    },
  )
})

import { describe, expect, test } from 'vitest'
import type { Fields } from './check-fields.js'
import { show } from '../../codec/show.js'
import { checkFields, notYet } from './check-fields.js'

const inner: Fields = { fields: { deep: (v) => (v === 1 ? undefined : `must be 1, got ${show(v)}`) } }
const shape: Fields = {
  fields: {
    retry: (v) => checkFields(v, '', inner),
    timeout: (v) => (typeof v === 'number' ? undefined : `must be a number, got ${show(v)}`),
    queue: () => undefined,
  },
  notYet: {
    group: notYet('use a label'),
    executor: notYet('use a thread of your own', 'loop'),
    dashboard: notYet('look', false),
  },
}
const problems = (value: unknown, path = ''): string[] =>
  checkFields(value, path, shape).map((p) => `${p.path} ${p.message}`)

describe('an object of options', () => {
  test('that is valid has no problems', () => {
    expect(problems({ timeout: 1, queue: 'x', retry: { deep: 1 } })).toEqual([])
    expect(problems({})).toEqual([])
  })

  test('has every problem reported at once, each with its path', () => {
    expect(problems({ timeout: 'x', retry: { deep: 2 }, qeue: 1, group: 'g' }, 'options')).toEqual([
      'options.timeout must be a number, got "x"',
      'options.retry.deep must be 1, got 2',
      'options.qeue is not an option; did you mean "queue"?',
      'options.group is not yet part of this version; until then: use a label',
    ])
  })

  test.each([null, undefined, 5, 'text', true, [], () => 1, 5n, Symbol('s')])(
    'is refused when it is none: %#',
    (value) => {
      const [problem, ...more] = checkFields(value, 'options', shape)
      expect(more).toEqual([])
      expect(problem).toEqual({ path: 'options', message: `must be an object, got ${show(value)}` })
    },
  )

  test('may have an option that is undefined', () => {
    expect(problems({ timeout: undefined, group: undefined })).toEqual([])
  })

  test('may have an option that is not built yet with its present value, and with no other', () => {
    expect(problems({ executor: 'loop', dashboard: false })).toEqual([])
    expect(problems({ executor: 'thread', dashboard: true, group: null })).toEqual([
      'executor is not yet part of this version; until then: use a thread of your own',
      'dashboard is not yet part of this version; until then: look',
      'group is not yet part of this version; until then: use a label',
    ])
  })

  test.each(['constructor', 'toString', 'hasOwnProperty', 'valueOf'])('has no option %s', (name) => {
    expect(problems({ [name]: 1 })[0]).toMatch(new RegExp(`^${name} is not an option`))
  })

  test('has no option __proto__, and is not changed by one', () => {
    const given = JSON.parse('{"__proto__": {"timeout": "x"}}') as object
    expect(problems(given)[0]).toMatch(/^__proto__ is not an option/)
    expect(({} as { timeout?: unknown }).timeout).toBeUndefined()
  })
})

describe('an unknown option', () => {
  const known: Fields = {
    fields: { retry: () => undefined, timeout: () => undefined, concurrency: () => undefined },
    notYet: { onDuplicate: notYet('wait') },
    foreignNames: { attempts: 'use retry: { limit }' },
  }
  const message = (name: string): string | undefined => checkFields({ [name]: 1 }, '', known)[0]?.message

  test.each([
    ['retri', 'retry'],
    ['rerty', 'retry'],
    ['Retry', 'retry'],
    ['time_out', 'timeout'],
    ['concurency', 'concurrency'],
    ['onduplicates', 'onDuplicate'],
  ])('%s is refused with the near spelling %s', (given, meant) => {
    expect(message(given)).toBe(`is not an option; did you mean ${JSON.stringify(meant)}?`)
  })

  test('of another library is refused with our name for it, and a property of Object.prototype is no such name', () => {
    expect(message('attempts')).toBe('is not an option; use retry: { limit }')
    expect(message('toString')).toBe('is not an option')
  })

  test('without a near spelling gets no suggestion', () => {
    expect(message('elephant')).toBe('is not an option')
  })

  test('of a million letters is refused like any other', () => {
    expect(message('x'.repeat(1_000_000))).toBe('is not an option')
  })
})

import { describe, expect, test } from 'vitest'
import { DefinitionError } from '../../errors.js'
import type { AnyJob, Category, CategoryOptions, JobOptions } from './define.js'
import { category, job } from './define.js'
import { categoriesOf, checkInheritance, inherited, levels, resolveHandler } from './inheritance.js'

const run = (): number => 1
const of = (...is: Category[]): AnyJob => job('a', { run, is }) as AnyJob
const from = (...is: Category[]): AnyJob => job('a', { is })
const queue = (name: string, is: readonly Category[] = []): Category => category(name, { queue: `of-${name}`, is })

describe('the categories of a job', () => {
  test('come nearest first, then in the order of is, each once', () => {
    const root = category('root')
    const [x, y] = [category('x', { is: [root] }), category('y', { is: [root] })]
    expect(categoriesOf(of(x, y, root)).map((c) => c.name)).toEqual(['x', 'y', 'root'])
    expect(categoriesOf(of(y, x)).map((c) => c.name)).toEqual(['y', 'x', 'root'])
    expect(categoriesOf(of())).toEqual([])
  })

  test('that form a cycle are refused with the path', () => {
    const back: Category[] = []
    const a = category('alpha', { is: back })
    const b = category('beta', { is: [a] })
    back.push(b)
    expect(() => categoriesOf(of(b))).toThrow(DefinitionError)
    expect(() => categoriesOf(of(b))).toThrow('beta is alpha is beta')
    expect(() => checkInheritance(of(b))).toThrow('beta is alpha is beta')
  })

  test('that list themselves are refused', () => {
    const back: Category[] = []
    const selfish = category('selfish', { is: back })
    back.push(selfish)
    expect(() => categoriesOf(of(selfish))).toThrow('selfish is selfish')
  })

  test('of the same name are refused, naming it', () => {
    expect(() => categoriesOf(of(category('twin'), category('twin')))).toThrow(
      /two different categories are named "twin"/,
    )
  })

  test('may have the name of the job', () => {
    expect(categoriesOf(of(category('a'))).map((c) => c.name)).toEqual(['a'])
  })

  // There are 2^200 paths.
  test('in a chain of two hundred diamonds are found without walking every path', () => {
    let level: readonly Category[] = [category('l0'), category('r0')]
    for (let i = 1; i <= 200; i += 1) level = [category(`l${i}`, { is: level }), category(`r${i}`, { is: level })]
    expect(categoriesOf(of(...level))).toHaveLength(402)
  })

  test('that form a cycle are refused also where each of them is listed by the job', () => {
    const back: Category[] = []
    const a = category('alpha', { is: back })
    const b = category('beta', { is: [a] })
    back.push(b)
    expect(() => categoriesOf(of(a, b))).toThrow('alpha is beta is alpha')
    expect(() => categoriesOf(of(category('first', { is: [b] }), a))).toThrow(
      /circle: (alpha is beta is alpha|beta is)/,
    )
  })
})

describe('an option of a job', () => {
  test('is its own before any category’s', () => {
    expect(inherited(job('a', { run, queue: 'own', is: [queue('x')] }) as AnyJob, 'queue')).toBe('own')
  })

  test('is the nearest category’s', () => {
    const far = queue('far')
    expect(inherited(of(category('near', { is: [far], queue: 'near' })), 'queue')).toBe('near')
    expect(inherited(of(category('silent', { is: [far] })), 'queue')).toBe('of-far')
  })

  test('is that of the first in is among the equally near of one list', () => {
    expect(inherited(of(queue('x'), queue('y')), 'queue')).toBe('of-x')
    expect(inherited(of(queue('y'), queue('x')), 'queue')).toBe('of-y')
  })

  test('that comes equally near from two lists is refused, naming both', () => {
    const tie = of(category('l', { is: [queue('x')] }), category('r', { is: [queue('y')] }))
    expect(() => inherited(tie, 'queue')).toThrow(DefinitionError)
    expect(() => inherited(tie, 'queue')).toThrow(/option queue comes equally near from categories "x" and "y"/)
    expect(() => checkInheritance(tie)).toThrow(/"x" and "y"/)
  })

  test('that comes equally near with the same value is no tie', () => {
    const [x, y] = [category('x', { queue: 'same' }), category('y', { queue: 'same' })]
    expect(inherited(of(category('l', { is: [x] }), category('r', { is: [y] })), 'queue')).toBe('same')
  })

  test('tied at a greater depth is no tie when a nearer category sets it', () => {
    const l = category('l', { is: [queue('x')], queue: 'near' })
    expect(inherited(of(l, category('r', { is: [queue('y')] })), 'queue')).toBe('near')
  })

  test.each<[keyof CategoryOptions, unknown, unknown]>([
    ['run', run, (): number => 2],
    ['queue', 'p', 'q'],
    ['priority', 1, 2],
    ['timeout', '1s', '2s'],
    ['treatAsDone', (): boolean => true, (): boolean => false],
    ['description', 'p', 'q'],
    ['codec', { encode: String, decode: String }, { encode: String, decode: String }],
    ['onParentFailure', 'run', 'cancel'],
  ])('%s is checked for ties', (name, p, q) => {
    const tie = from(
      category('l', { is: [category('x', { [name]: p })] }),
      category('r', { is: [category('y', { [name]: q })] }),
    )
    expect(() => inherited(tie, name)).toThrow(/"x" and "y"/)
    expect(() => checkInheritance(tie)).toThrow(`option ${name} comes equally near`)
    expect(() =>
      checkInheritance(
        job('a', { run, is: tie.options.is, [name]: p } as JobOptions<undefined, unknown, unknown>) as AnyJob,
      ),
    ).not.toThrow()
  })

  // The second category of a list has another value. Only the first of each list counts.
  test('is no tie when the first value of each list is the same', () => {
    const l = category('l', { is: [category('x', { queue: 'same' })] })
    const r = category('r', { is: [category('y', { queue: 'same' }), category('z', { queue: 'other' })] })
    expect(inherited(of(l, r), 'queue')).toBe('same')
  })

  // A tie is refused for each part of an option that merges, too, unless the job sets that part.
  test.each<[keyof CategoryOptions, string, unknown, unknown]>([
    ['retry', 'limit', 1, 2],
    ['retry', 'backoff', 'fixed', 'exponential'],
    ['retry', 'jitter', 0, 1],
    ['retry', 'when', (): boolean => true, (): boolean => false],
    ['keep', 'done', '1h', '2h'],
    ['keep', 'failed', '1h', '2h'],
    ['keep', 'cancelled', '1h', '2h'],
    ['unique', 'by', 'a', 'b'],
    ['unique', 'for', '1h', '2h'],
    ['unique', 'while', 'waiting', 'unfinished'],
    ['unique', 'onDuplicate', 'ignore', 'reject'],
  ])('that merges, %s, is refused as well when two lists disagree on %s', (name, part, p, q) => {
    const is = [
      category('l', { is: [category('x', { [name]: { [part]: p } } as CategoryOptions)] }),
      category('r', { is: [category('y', { [name]: { [part]: q } } as CategoryOptions)] }),
    ]
    expect(() => checkInheritance(of(...is))).toThrow(`option ${name}.${part} comes equally near`)
    const own = job('a', { run, is, [name]: { [part]: p } } as JobOptions<undefined, unknown, unknown>) as AnyJob
    expect(() => checkInheritance(own)).not.toThrow()
  })

  test('that merges is no tie where the job is not unique at all, and one where a category is not', () => {
    const is = [
      category('l', { is: [category('x', { unique: { by: 'a' } })] }),
      category('r', { is: [category('y', { unique: false })] }),
    ]
    expect(() => checkInheritance(of(...is))).toThrow('option unique.by comes equally near')
    expect(() => checkInheritance(job('a', { run, is, unique: false }) as AnyJob)).not.toThrow()
  })

  test('that merges is listed most specific first', () => {
    const far = category('far', { retry: { limit: 3 } })
    const near = category('near', { retry: { limit: 2 }, is: [far] })
    const all = levels(job('a', { run, retry: { limit: 1 }, is: [near, category('none')] }) as AnyJob, 'retry')
    expect(all.map((level) => level.limit)).toEqual([1, 2, 3])
  })
})

describe('the handler of a job', () => {
  test('is its own', () => {
    const own = (): number => 2
    expect(resolveHandler(job('a', { run: own, is: [category('c', { run })] }) as AnyJob)).toBe(own)
  })

  test('is the nearest category’s fallback when it has none', () => {
    const far = category('far', { run: () => 9 })
    expect(resolveHandler(from(category('near', { run, is: [far] })))).toBe(run)
    expect(resolveHandler(from(category('silent', { is: [far] })))).toBe(far.options.run)
  })

  test('is undefined when no level has one', () => {
    expect(resolveHandler(from(category('c')))).toBeUndefined()
  })
})

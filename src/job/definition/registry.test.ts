import { describe, expect, test } from 'vitest'
import { codec, defaultCodec } from '../../codec/codec.js'
import { DefinitionError, UnknownJobError } from '../../errors.js'
import type { AnyJob } from './define.js'
import * as define from './define.js'
import { category, job } from './define.js'
import { lazy } from './lazy.js'
import type { Registered, SystemOptions } from './registry.js'
import { Registry } from './registry.js'
import { mergeRetry } from '../rules/retry.js'

const HOUR = 3_600_000
const DAY = 24 * HOUR
const SYSTEM: SystemOptions = {
  codec: defaultCodec,
  retry: undefined,
  timeoutMs: HOUR / 2,
  keep: undefined,
  unknown: undefined,
}

const registry = (jobs: unknown, change: Partial<SystemOptions> = {}): Registry =>
  new Registry(jobs, { ...SYSTEM, ...change })

function registered(defined: unknown, change: Partial<SystemOptions> = {}): Registered {
  const found = registry([defined], change).get((defined as AnyJob).name)
  if (found === undefined) throw new Error('it was not registered')
  return found
}

const names = (from: Registry): string[] => from.list().map((r) => r.job.name)
const run = (): number => 1

/** This module's own namespace, as `import * as jobs` returns it. */
export const exportedA = job('exported-a', run)
export const exportedB = job('exported-b', run)
export const exportedCategory = category('exported')
export const somethingElse = 42

describe('jobs', () => {
  test('may be an array, an object or undefined', () => {
    const [a, b] = [job('a', run), job('b', run)]
    expect(names(registry([a, b]))).toEqual(['a', 'b'])
    expect(names(registry({ anyKey: a, key: b }))).toEqual(['a', 'b'])
    expect(names(registry(undefined))).toEqual([])
    expect(names(registry([]))).toEqual([])
    expect(names(registry({}))).toEqual([])
  })

  test('may be a module, whose other exports are ignored', async () => {
    const module = (await import('./registry.test.js')) as object
    expect(names(registry(module)).sort()).toEqual(['exported-a', 'exported-b'])
    expect(names(registry(define))).toEqual([])
  })

  test('may be an object with categories, as a spread module namespace is', () => {
    expect(names(registry({ a: job('a', run), c: category('c') }))).toEqual(['a'])
  })

  test.each<[string, unknown, RegExp]>([
    ['a text', 'a', /jobs must be an array, an object or a module of jobs, got "a"/],
    ['null', null, /jobs must be .* got null/],
    ['a number', 5, /got 5/],
    ['a function', run, /got a function/],
    ['an array with a function', [run], /^jobs\[0\] must be a job made by job\(\), got a function/],
    ['an array with a category', [job('a', run), category('c')], /^jobs\[1\] must be a job/],
    ['an array with a hole', [undefined], /^jobs\[0\] must be a job .* got undefined/],
    ['an object with a function', { sendEmail: run }, /^jobs\.sendEmail must be a job made by job\(\), got a function/],
    ['an object that only looks like a job', { a: { name: 'a', run } }, /^jobs\.a must be a job/],
  ])('given as %s are refused', (_, jobs, message) => {
    expect(() => registry(jobs)).toThrow(DefinitionError)
    expect(() => registry(jobs)).toThrow(message)
  })

  test('of another copy of the package are recognised by their brand', () => {
    const foreign = { [Symbol.for('millrace.job')]: true, name: 'foreign', options: { run }, run }
    expect(names(registry([foreign]))).toEqual(['foreign'])
  })

  test.each(['constructor', '__proto__', 'toString', 'hasOwnProperty', 'prototype'])(
    'named %s are unknown until such a job is registered',
    (name) => {
      const empty = registry([job('a', run)])
      expect(empty.has(name)).toBe(false)
      expect(empty.get(name)).toBeUndefined()
      expect(empty.runnable(name)).toBeUndefined()
      expect(() => empty.lookUp(name)).toThrow(UnknownJobError)
      expect(registry([job(name, run)]).has(name)).toBe(true)
    },
  )
})

describe('one name', () => {
  test('registered twice with different handlers is refused, naming both', () => {
    const first = job('send', { run: async () => 1, description: 'sends by mail' })
    const second = job('send', async () => 'by post')
    expect(() => registry([first, second])).toThrow(DefinitionError)
    expect(() => registry([first, second])).toThrow(/two different jobs are named "send".*"sends by mail".*by post/)
  })

  test('registered twice with the same value, or the same handler, is one job', () => {
    const a = job('a', run)
    expect(names(registry([a, a, job('a', run)]))).toEqual(['a'])
  })

  test('registered twice without a handler of its own is one job if it is the same value, and two jobs else', () => {
    const fallback = category('c', { run })
    const make = (): AnyJob => job('a', { is: [fallback] })
    const one = make()
    expect(names(registry([one, one]))).toEqual(['a'])
    expect(() => registry([one, make()])).toThrow(/one that runs `lazy or from a category` and one that runs/)
  })

  test('refused at registration is described by the beginning of its handler', () => {
    const long = Object.assign(() => 1, { toString: () => `() =>\n  ${'x'.repeat(100)}` })
    expect(() => registry([job('a', run), job('a', long)])).toThrow(`\`() => ${'x'.repeat(54)}\``)
  })

  test('refused at registration leaves the first one registered', () => {
    const known = registry([job('a', run)])
    expect(() => known.register(job('a', () => 2) as AnyJob)).toThrow(DefinitionError)
    expect(known.get('a')?.run).toBe(run)
  })

  test('added later is found from then on', () => {
    const known = registry([])
    expect(known.claimable()).toEqual([])
    known.register(job('late', run) as AnyJob)
    expect(known.claimable()).toEqual(['late'])
    expect(known.has('late')).toBe(true)
  })

  test.each([run, 'a', null, undefined, {}, category('c')])('given to register as number %# is refused', (given) => {
    expect(() => registry([]).register(given as never)).toThrow(/register\(\) takes a job made by job\(\)/)
  })
})

describe('the lookup of the job of an enqueue', () => {
  const known = registry([job('send-email', run), job('charge', run)])

  test('finds a registered name', () => {
    expect(known.lookUp('charge').job.name).toBe('charge')
  })

  test('accepts a job value that is not registered in this process', () => {
    const elsewhere = job('elsewhere', { run, queue: 'far' })
    expect(known.lookUp(elsewhere as AnyJob)).toMatchObject({ queue: 'far' })
    expect(known.has('elsewhere')).toBe(false)
  })

  test('resolves a job value that is not registered once, and its codec and keep are those of its results', () => {
    const [own, jobs] = [codec({}), registry([], { keep: '3d' })]
    const elsewhere = job('elsewhere', { run, codec: own, keep: '1d' })
    expect([jobs.codecOf('elsewhere'), jobs.keepOf('elsewhere').done]).toEqual([defaultCodec, 3 * DAY])
    const found = jobs.lookUp(elsewhere as AnyJob)
    expect(jobs.lookUp(elsewhere as AnyJob)).toBe(found)
    expect(jobs.codecOf('elsewhere')).toBe(own)
    expect(jobs.keepOf('elsewhere').done).toBe(DAY)
    expect(jobs.get('elsewhere')).toBeUndefined()
  })

  test('takes a registered job and its codec before others of the same name', () => {
    const [own, other] = [codec({}), codec({})]
    const here = job('a', { run, codec: own, keep: '1d' })
    const jobs = registry([here])
    expect(jobs.lookUp(here as AnyJob)).toBe(jobs.get('a'))
    expect(jobs.lookUp(job('a', { run, codec: other, keep: '2d' }) as AnyJob).codec).toBe(other)
    expect(jobs.codecOf('a')).toBe(own)
    expect(jobs.keepOf('a').done).toBe(DAY)
  })

  test('refuses an unknown name with the near spelling', () => {
    expect(() => known.lookUp('send-emial')).toThrow(
      'no job named "send-emial" is registered here; did you mean "send-email"?',
    )
  })

  test.each([5, null, undefined, {}, run, category('c')])(
    'refuses a value that is neither a job nor a name: %#',
    (given) => {
      expect(() => known.lookUp(given as never)).toThrow(/expected a job made by job\(\), or its name, got/)
    },
  )
})

describe('a name that is not registered', () => {
  test('is not claimed and cannot be run', () => {
    const known = registry([job('a', run)])
    expect(known.claimable()).toEqual(['a'])
    expect(known.runnable('stranger')).toBeUndefined()
  })

  test('is run by the unknown handler with the mill’s options, and then every name is claimed', () => {
    const unknown = (): string => 'caught'
    const known = registry([job('a', run)], { unknown, retry: { limit: 2 } })
    expect(known.claimable()).toBeUndefined()
    expect(known.runnable('stranger')).toMatchObject({ run: unknown, queue: 'default', timeoutMs: HOUR / 2 })
    expect(mergeRetry(known.runnable('stranger')?.retryLevels ?? []).limit).toBe(2)
    expect(known.runnable('a')?.run).toBe(run)
    expect(known.has('stranger')).toBe(false)
  })
})

describe('the job of a filter', () => {
  const mail = category('mail')
  const urgent = category('urgent', { is: [mail] })
  const a = job('a', { run, is: [mail] })
  const b = job('b', { run, is: [urgent] })
  const known = registry([a, b, job('c', run)])

  test.each<[string, unknown, string[]]>([
    ['a name', 'anything', ['anything']],
    ['a job', a, ['a']],
    ['a category, with the jobs of the categories in it', mail, ['a', 'b']],
    ['a narrower category', urgent, ['b']],
    ['a list of all these', ['x', a, urgent], ['x', 'a', 'b']],
    ['an empty list', [], []],
  ])('%s', (_, given, meant) => {
    expect(known.namesOf(given)).toEqual(meant)
  })

  test.each([5, null, {}, run])('is refused when it is none of these: %#', (given) => {
    expect(() => known.namesOf(given)).toThrow(/a filter's job must be a job, a name or a category/)
  })
})

describe('an inherited option', () => {
  test('is the default when no level sets it', () => {
    expect(registered(job('a', run))).toMatchObject({
      queue: 'default',
      priority: 0,
      timeoutMs: HOUR / 2,
      keepMs: { done: 7 * DAY, cancelled: 7 * DAY, failed: 30 * DAY },
      retryLevels: [],
      labels: [],
      codec: defaultCodec,
    })
  })

  test('is the job’s own, else its category’s, else the mill’s', () => {
    const own = codec()
    const c = category('c', { queue: 'theirs', timeout: '1h', priority: 5, labels: ['c'], codec: own })
    expect(registered(job('a', { run, is: [c], queue: 'mine', timeout: Infinity }))).toMatchObject({
      queue: 'mine',
      timeoutMs: Infinity,
      priority: 5,
      labels: ['c'],
      codec: own,
    })
  })

  test('merges retry option by option through all levels', () => {
    const far = category('far', { retry: { limit: 1, jitter: 0.9, backoff: 'fixed' } })
    const near = category('near', { is: [far], retry: { limit: 2, jitter: 0.5 } })
    const { retryLevels } = registered(job('a', { run, is: [near], retry: { limit: 3 } }), {
      retry: { when: run as never },
    })
    expect(mergeRetry(retryLevels)).toEqual({ limit: 3, jitter: 0.5, backoff: 'fixed', when: run })
  })

  test('merges keep state by state through all levels', () => {
    const c = category('c', { keep: { failed: '1h' } })
    const { keepMs } = registered(job('a', { run, is: [c], keep: { done: Infinity } }), { keep: { cancelled: 5 } })
    expect(keepMs).toEqual({ done: Infinity, failed: HOUR, cancelled: 5 })
  })

  test.each([
    ['1h', HOUR],
    [5, 5],
    [Infinity, Infinity],
  ] as const)('takes keep %s as the time for every end', (keep, ms) => {
    const all = { done: ms, failed: ms, cancelled: ms }
    expect(registered(job('a', { run, keep }), { keep: { done: '1d' } }).keepMs).toEqual(all)
    expect(registered(job('a', { run }), { keep }).keepMs).toEqual(all)
    expect(registered(job('a', { run, keep: { done: '1h' } }), { keep }).keepMs).toEqual({ ...all, done: HOUR })
  })

  test('keeps nothing when the nearest level says none', () => {
    expect(registered(job('a', { run, keep: 'none' }), { keep: { done: '1d' } }).keepMs).toEqual({
      done: 0,
      cancelled: 0,
      failed: 0,
    })
  })

  test('says what a job does when its parent fails', () => {
    expect(registered(job('a', run)).onParentFailure).toBe('wait')
    expect(registered(job('a', { run, is: [category('c', { onParentFailure: 'run' })] })).onParentFailure).toBe('run')
  })

  test('that comes equally near from two categories is refused at registration', () => {
    const of = (name: string, limit: number) => category(name, { is: [category(`${name}x`, { retry: { limit } })] })
    expect(() => registered(job('a', { run, is: [of('l', 1), of('r', 2)] }))).toThrow('comes equally near')
  })

  test('is refused when no level has a handler', () => {
    expect(() => registry([job('a', { is: [category('c')] })])).toThrow(/job "a" has no handler/)
  })

  test('may be a lazy handler of a category', () => {
    const run = lazy(async () => () => 1)
    expect(registered(job('a', { is: [category('c', { run: run as never })] })).run).toBe(run)
  })
})

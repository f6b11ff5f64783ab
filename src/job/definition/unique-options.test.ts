import { expect, test } from 'vitest'
import { category, job } from './define.js'
import { Registry } from './registry.js'
import { defaultCodec } from '../../codec/codec.js'
import { mergeUnique } from './unique-options.js'
import type { UniqueOptions } from './unique-options.js'

const setParts = (unique: UniqueOptions | undefined): object | undefined =>
  unique && Object.fromEntries(Object.entries(unique).filter(([, value]) => value !== undefined))

test('levels are merged part by part, the most specific first', () => {
  expect(setParts(mergeUnique([{ for: '1m' }, undefined, { by: 'a', for: '1h', onDuplicate: 'reject' }]))).toEqual({
    by: 'a',
    for: '1m',
    onDuplicate: 'reject',
  })
})

test('without a level the job is not unique, and an empty object means the whole payload', () => {
  expect(mergeUnique([undefined, undefined])).toBeUndefined()
  expect(setParts(mergeUnique([{}]))).toEqual({})
})

test('false hides every level below it', () => {
  expect(mergeUnique([false, { by: 'a' }])).toBeUndefined()
  expect(setParts(mergeUnique([{ for: '1m' }, false, { by: 'a' }]))).toEqual({ for: '1m' })
})

const run = async (): Promise<void> => {}
const system = { codec: defaultCodec, retry: undefined, timeoutMs: 1, keep: undefined, unknown: undefined }
const resolved = (given: ReturnType<typeof job>): object | undefined =>
  setParts(new Registry([given], system).get('j')?.unique)

test('a job merges its own unique options with those of its categories', () => {
  const far = category('far', { unique: { by: 'far', for: '1h', while: 'waiting' } })
  const near = category('near', { is: [far], unique: { by: 'near' } })
  expect(resolved(job('j', { run, is: [near], unique: { onDuplicate: 'replace' } }))).toEqual({
    by: 'near',
    for: '1h',
    while: 'waiting',
    onDuplicate: 'replace',
  })
  expect(resolved(job('j', { run, is: [near], unique: false }))).toBeUndefined()
  expect(resolved(job('j', { run }))).toBeUndefined()
})

test('two categories that are equally near and disagree are refused, naming both', () => {
  const one = category('one', { is: [category('left', { unique: { by: 'a' } })] })
  const two = category('two', { is: [category('right', { unique: { by: 'b' } })] })
  expect(() => resolved(job('j', { run, is: [one, two] }))).toThrow(/option unique\.by .*"left" and "right"/)
  const none = category('none', { is: [category('right', { unique: false })] })
  expect(() => resolved(job('j', { run, is: [one, none] }))).toThrow(/option unique\.by .*"left" and "right"/)
})

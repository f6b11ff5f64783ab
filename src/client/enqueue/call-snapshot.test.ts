import { describe, expect, test } from 'vitest'
import { codec, defaultCodec } from '../../codec/codec.js'
import type { Registered } from '../../job/definition/registry.js'
import { PayloadSnapshot, copyOptions, copyValue } from './call-snapshot.js'

describe('the options of a call', () => {
  test.each<[string, (given: never) => void, unknown]>([
    ['labels', (given: string[]) => given.push('late'), ['a']],
    ['retry', (given: { backoff: { start: number } }) => (given.backoff.start = 9), { backoff: { start: 1 } }],
    ['unique', (given: { by: string[] }) => given.by.push('late'), { by: ['a'] }],
    ['after', (given: unknown[][]) => given[0]?.push('late'), [['job', 'key'], 'id']],
    ['in', (given: { hours: number }) => (given.hours = 9), { hours: 1 }],
    ['at', (given: Date) => given.setTime(9), new Date(1)],
    ['expires', (given: Date) => given.setTime(9), new Date(1)],
  ])('are as they were when it was made: %s', (name, change, given) => {
    const before = structuredClone(given)
    const copied = copyOptions({ [name]: given } as object) as Record<string, unknown>
    change(given as never)
    expect(given).not.toEqual(before)
    expect(copied).toEqual({ [name]: before })
  })

  test('keep the transaction handle and the meta as they are', () => {
    const [tx, meta] = [{ query: 1 }, { deep: [1] }]
    const copied = copyOptions({ tx, meta } as object) as { readonly tx: object; readonly meta: object }
    expect([copied.tx, copied.meta]).toEqual([tx, meta])
    expect(copied.tx).toBe(tx)
    expect(copied.meta).toBe(meta)
    expect(Object.keys(copyOptions({ priority: 1 } as object))).toEqual(['priority'])
  })

  test('that are no options are returned as they are, to be refused later', () => {
    const hostile = new Proxy({}, { ownKeys: (): never => JSON.parse('{') as never })
    for (const given of [undefined, null, 5, 'text', ['a'], Promise.resolve({ labels: ['a'] }), hostile])
      expect(copyOptions(given as never)).toBe(given)
  })

  test('have no copy of an object of a class, which may be a job or a handle', () => {
    const [map, nothing] = [new Map(), Object.create(null) as object]
    expect([copyValue(map), copyValue(nothing), copyValue(null), copyValue(5)]).toEqual([map, nothing, null, 5])
    expect(copyValue(map)).toBe(map)
    expect(copyValue(nothing)).toBe(nothing)
  })
})

describe('the payload of a call', () => {
  const snapshot = (using: typeof defaultCodec): PayloadSnapshot =>
    new PayloadSnapshot({ codec: using } as Registered, { at: 'the call' }, '{"at":"the store"}')

  test('is read as it will be stored', () => {
    expect(snapshot(defaultCodec).read()).toEqual({ at: 'the store' })
  })

  test('is the given one where the codec can only write', () => {
    const writeOnly = codec({ encode: String, decode: () => JSON.parse('{') as unknown })
    expect(snapshot(writeOnly).read()).toEqual({ at: 'the call' })
  })
})

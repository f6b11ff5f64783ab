import { describe, expect, test } from 'vitest'
import { decideLink, parentFateOf, findCycle, LINK_POLICIES, policiesMovedBy, parentReason } from './links.js'
import type { ParentFate, LinkVerdict } from './links.js'

describe('the decision about a link', () => {
  const table: Record<ParentFate, readonly LinkVerdict[]> = {
    //            wait        cancel      run         past
    unfinished: ['stays', 'stays', 'stays', 'stays'],
    parked: ['stays', 'stays', 'stays', 'resolves'],
    done: ['resolves', 'resolves', 'resolves', 'resolves'],
    failed: ['stays', 'cancels', 'resolves', 'resolves'],
    cancelled: ['stays', 'cancels', 'resolves', 'resolves'],
    gone: ['cancels', 'cancels', 'resolves', 'resolves'],
  }
  test.each(Object.keys(table) as ParentFate[])('when its parent is %s', (fate) => {
    expect(LINK_POLICIES.map((policy) => decideLink(fate, policy))).toEqual(table[fate])
    expect(policiesMovedBy(fate)).toEqual(LINK_POLICIES.filter((_, i) => table[fate][i] !== 'stays'))
  })

  test('follows the present state of the parent, and the noted state only when the parent has no row', () => {
    expect(parentFateOf('ready', 'failed')).toBe('unfinished')
    expect(parentFateOf('failed', 'done')).toBe('failed')
    expect(parentFateOf('ready', 'parked')).toBe('unfinished')
    for (const state of ['done', 'cancelled', 'parked'] as const) expect(parentFateOf(state, 'recheck')).toBe(state)
    expect(parentFateOf(undefined, 'done')).toBe('done')
    expect(parentFateOf(undefined, 'failed')).toBe('gone')
    expect(parentFateOf(undefined, 'recheck')).toBe('gone')
  })

  test('has a reason with the parent’s name where it is known', () => {
    expect(parentReason('failed', { id: 'i', name: 'extract' })).toBe('its parent extract i failed')
    expect(parentReason('cancelled', { id: 'i', name: 'extract' })).toBe('its parent extract i was cancelled')
    expect(parentReason('failed', { id: 'i' })).toBe('its parent i failed')
    expect(parentReason('gone', { id: 'i', name: null })).toBe('its parent i is gone: it was deleted or pruned')
  })
})

describe('a cycle', () => {
  const of = (graph: Record<string, string[]>): string[] | undefined =>
    findCycle(Object.keys(graph), (node) => graph[node] ?? [])

  test('is found with its path', () => {
    expect(of({ a: ['b'], b: ['c'], c: ['a'] })).toEqual(['a', 'b', 'c', 'a'])
    expect(of({ a: ['a'] })).toEqual(['a', 'a'])
    expect(of({ x: ['a'], a: ['b'], b: ['a'] })).toEqual(['a', 'b', 'a'])
  })

  test('is found behind a job without parents, and after one that leads nowhere', () => {
    expect(of({ x: [], a: ['b'], b: ['a'] })).toEqual(['a', 'b', 'a'])
    expect(of({ a: ['leaf', 'b'], b: ['a'], leaf: [] })).toEqual(['a', 'b', 'a'])
  })

  test('is not reported for two paths to one job', () => {
    expect(of({ a: ['b', 'c'], b: ['d'], c: ['d'], d: [] })).toBeUndefined()
  })

  test('is searched for in long chains and in dense graphs', () => {
    const chain = Object.fromEntries(Array.from({ length: 50_000 }, (_, i) => [`${i}`, [`${i + 1}`]]))
    expect(of(chain)).toBeUndefined()
    const dense = Object.fromEntries(
      Array.from({ length: 300 }, (_, i) => [`${i}`, Array.from({ length: i }, (__, j) => `${j}`)]),
    )
    expect(of(dense)).toBeUndefined()
  })
})

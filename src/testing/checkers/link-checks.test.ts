import { describe, expect, test } from 'vitest'
import type { Census, CensusJob } from '../../store/census.js'
import { checkDrained } from './checks.js'
import { LinkChecker } from './link-checks.js'
import { census, facts, checking, waiting } from '../../../test/support/small-census.js'

describe('links', () => {
  const parent: CensusJob = { ...waiting, id: 'p', seq: 2 }
  const child: CensusJob = { ...waiting, state: 'blocked', after: ['p'], payloadParents: ['p'], policy: 'cancel' }
  const open = { links: [{ parent: 'p', child: 1, policy: 'cancel' as const }] }
  const ended = (state: CensusJob['state'], id = 'p'): CensusJob => ({ ...parent, id, state, worker: 'w' })
  const cancelledBecause = (reason: string): CensusJob => ({ ...child, state: 'cancelled', reason })

  test('keep a job blocked while they are open', () => {
    expect(checking(census([child, parent], open))).not.toThrow()
    expect(checking(census([{ ...child, state: 'paused' }, parent], open))).not.toThrow()
    expect(checking(census([{ ...child, state: 'ready' }, parent], open))).toThrow(
      'P1: job a is ready, and waits for p',
    )
    expect(checking(census([child, parent]))).toThrow('P1: job a is blocked, and waits for no parent')
    expect(checking(census([{ ...child, state: 'ready' }, parent]))).toThrow('does not wait any more for its parent p')
    expect(checking(census([{ ...child, after: ['q'] }, parent], open))).toThrow(
      'was to come after p, and comes after q',
    )
  })

  test('have a to-do when a parent has ended', () => {
    for (const over of [[ended('done')], [ended('failed')], [ended('cancelled')], []]) {
      expect(checking(census([child, ...over], { ...open, todos: ['p'] }))).not.toThrow()
      expect(checking(census([child, ...over], open))).toThrow('and no to-do is pending for it')
    }
    expect(() => checkDrained(census([child, ended('failed')], { ...open, todos: ['p'] }), 2_000)).toThrow(
      'P1: nothing runs',
    )
  })

  test('cancel a job only for a reason that is true', () => {
    const failed = cancelledBecause('its parent work p failed')
    expect(checking(census([failed, ended('failed')]))).not.toThrow()
    expect(checking(census([failed, parent]))).toThrow('P1: job a was cancelled because its parent p failed, which is')
    expect(checking(census([{ ...failed, policy: 'wait' }, ended('failed')]))).toThrow('had policy wait')
    expect(checking(census([{ ...cancelledBecause('its parent p is gone: it'), policy: 'wait' }]))).not.toThrow()
    expect(checking(census([cancelledBecause('its parent work q failed'), ended('failed', 'q')]))).toThrow(
      'no parent of it',
    )
  })

  test('leave no job blocked forever', () => {
    const kept = { links: [{ parent: 'p', child: 1, policy: 'wait' as const }] }
    for (const state of ['parked', 'failed', 'cancelled'] as const)
      expect(() => checkDrained(census([child, ended(state)], kept), 2_000)).not.toThrow()
    const ring = { links: [...kept.links, { parent: 'a', child: 2, policy: 'wait' as const }] }
    expect(() => checkDrained(census([child, { ...parent, state: 'blocked' }], ring), 2_000)).toThrow(
      'nothing can free it',
    )
    expect(() => checkDrained(census([child], kept), 2_000)).toThrow('nothing can free it')
  })

  test('let no handler begin before them', () => {
    const links = new LinkChecker()
    const at = (...jobs: readonly CensusJob[]): Census => census(jobs)
    links.check(new Map(), new Map([['p', parent]]), census([child, parent], open), facts())
    expect(() => links.begins('a', () => at(child, parent))).toThrow('P1: job a begins before its parent p')
    expect(() => links.begins('a', () => at(child, ended('failed')))).toThrow('P1')
    expect(() => links.begins('a', () => at(child, ended('done')))).not.toThrow()
  })
})

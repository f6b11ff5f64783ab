import { expect, test } from 'vitest'
import { DuplicateKeyError, OutcomeUnknownError } from '../../errors.js'
import type { FindQuery } from '../../store/find.js'
import type { JobRow } from '../../store/store.js'
import { groupHandle } from './groups.js'
import type { GroupParts } from './groups.js'

/** A group whose failed members are on pages of one; `command` is what becomes of each. */
function groupOf(members: readonly string[], command: (id: string) => Promise<boolean>) {
  const queries: FindQuery[] = []
  const findJobs = async (query: FindQuery): Promise<{ rows: readonly JobRow[]; cursor: number | null }> => {
    queries.push(query)
    const at = query.cursor ?? 0
    const rows = members.slice(at, at + 1).map((id) => ({ id }) as JobRow)
    return { rows, cursor: at + 1 < members.length ? at + 1 : null }
  }
  const parts = { store: { jobs: { findJobs } }, command: (row: JobRow) => command(row.id) }
  return { queries, group: groupHandle(parts as unknown as GroupParts, 'g') }
}

const duplicate = (): Promise<never> => Promise.reject(new DuplicateKeyError('mail', 'k', 'other', 'is held'))
const CAUSE = new Error('the connection was lost')
const unknown = (id: string, answer: () => Promise<boolean>): Promise<never> =>
  Promise.reject(new OutcomeUnknownError('it may be written', [id], answer, { cause: CAUSE }))

test('a member whose key another job holds is left out, and the others are counted', async () => {
  const { group, queries } = groupOf(['a', 'b', 'c'], (id) => (id === 'b' ? duplicate() : Promise.resolve(true)))
  expect(await group.retryFailed()).toBe(2)
  expect(queries.map(({ cursor }) => cursor)).toEqual([null, 1, 2])
})

test('a command of a member that fails in another way rejects', async () => {
  const { group } = groupOf(['a'], () => Promise.reject(CAUSE))
  await expect(group.retryFailed()).rejects.toBe(CAUSE)
})

test('the retry after an unknown outcome goes on with the members that are left', async () => {
  const commanded: string[] = []
  const { group } = groupOf(['a', 'b', 'c'], (id) => {
    commanded.push(id)
    return id === 'b' ? unknown('b', () => Promise.resolve(true)) : Promise.resolve(true)
  })
  const error = await group.retryFailed().catch((each: unknown) => each as OutcomeUnknownError)
  expect(error).toBeInstanceOf(OutcomeUnknownError)
  expect(error).toMatchObject({ ids: ['b'], cause: CAUSE })
  expect(commanded).toEqual(['a', 'b'])
  expect(await (error as OutcomeUnknownError).retry()).toBe(3)
  expect(commanded).toEqual(['a', 'b', 'c'])
})

test('a member that turns out to be a duplicate after an unknown outcome is left out too', async () => {
  const { group } = groupOf(['a', 'b'], (id) => (id === 'a' ? unknown('a', duplicate) : Promise.resolve(true)))
  const error = await group.retryFailed().catch((each: unknown) => each as OutcomeUnknownError)
  expect(error).toBeInstanceOf(OutcomeUnknownError)
  expect(await (error as OutcomeUnknownError).retry()).toBe(1)
})

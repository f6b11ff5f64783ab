import { expect, test } from 'vitest'
import { Bench } from './bounds/bound.js'
import type { Bound } from './bounds/bound.js'
import { bounds } from './bounds/bounds.js'
import { untested } from './bounds/untested.js'
import { onPostgres } from './support/fresh-store.js'

/** Every named bound just below it, at it and just above it, through the public API and on the stores that have it. */
const here = (on: Bound['on']): boolean =>
  on === 'both' || on === (onPostgres ? 'postgres' : 'sqlite') || (on === 'none' && !onPostgres)

const isAll = process.env['MILLRACE_BOUNDS'] === 'all'

/** Of the bounds that both stores have, `npm test` repeats on PostgreSQL those of reads, writes and upkeep. */
const isOfTheStore = ({ of, on }: Bound): boolean => on === 'postgres' || /^src\/(store|client\/read|upkeep)\//.test(of)

function isShort(bound: Bound): boolean {
  if (isAll || bound.isLong === true) return isAll
  return !onPostgres || (bound.isLong === undefined && isOfTheStore(bound))
}

for (const bound of bounds.filter((each) => here(each.on) && isShort(each)))
  test(nameOf(bound), async () => {
    const bench = new Bench()
    try {
      for (const size of [bound.at - 1, bound.at, bound.at + 1]) await bound.holds(size, bench)
    } finally {
      await bench.close()
    }
  })

function nameOf({ of, when }: Bound): string {
  return `${of.slice('src/'.length)} at n − 1, n and n + 1${when === undefined ? '' : `: ${when}`}`
}

test('no two cases have one name', () => {
  expect(new Set(bounds.map(nameOf)).size).toBe(bounds.length)
})

test('a number without a case has one reason', () => {
  const named = untested.flatMap(({ bounds: names }) => names)
  expect(new Set(named).size).toBe(named.length)
})

import fc from 'fast-check'
import { expect, test } from 'vitest'
import { jobsHref, parseRoute, printRoute, term } from './route.js'

test('a route that was printed is read back, with any name and any search text', () => {
  fc.assert(
    fc.property(
      fc.string({ minLength: 1, unit: 'grapheme' }),
      fc.string({ minLength: 1, unit: 'grapheme' }),
      (id, q) => {
        const route = { page: 'queues', id, query: { q } } as const
        expect(parseRoute(printRoute(route))).toEqual(route)
      },
    ),
  )
})

test('a name with slashes and dots stays one name', () => {
  expect(printRoute({ page: 'queues', id: 'a/b.c' })).toBe('#/queues/a%2Fb.c')
  expect(parseRoute('#/queues/a%2Fb.c').id).toBe('a/b.c')
})

test('the root is the overview; an unknown page and a broken escape keep their text', () => {
  expect(parseRoute('').page).toBe('overview')
  expect(parseRoute('#/blah')).toEqual({ page: 'unknown', id: 'blah', query: {} })
  expect(parseRoute('#/job/100%').id).toBe('100%')
})

test('values of search terms are quoted where they would end the term', () => {
  expect([term('queue', 'mail'), term('key', 'a b'), term('key', 'say "hi"')]).toEqual([
    'queue:mail',
    'key:"a b"',
    'key:"say \\"hi\\""',
  ])
  expect(jobsHref('state:failed queue:mail')).toBe('#/jobs?q=state%3Afailed%20queue%3Amail')
})

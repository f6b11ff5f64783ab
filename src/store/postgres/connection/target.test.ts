import { expect, test } from 'vitest'
import { schemaOf } from './target.js'

const URL = 'postgres://localhost/app'

test.each<[string, { where: string; schema: string | undefined; wrong: string | undefined }]>([
  [URL, { where: URL, schema: undefined, wrong: undefined }],
  [`${URL}?sslmode=require`, { where: `${URL}?sslmode=require`, schema: undefined, wrong: undefined }],
  [`${URL}?schema=jobs`, { where: URL, schema: 'jobs', wrong: undefined }],
  [`${URL}?schema=jobs&schema=jobs`, { where: URL, schema: 'jobs', wrong: undefined }],
  [`${URL}?sslmode=require&schema=jobs`, { where: `${URL}?sslmode=require`, schema: 'jobs', wrong: undefined }],
  [
    `${URL}?schema=jobs&schema=mail`,
    { where: URL, schema: 'jobs', wrong: 'names several schemas, "jobs" and "mail"; name one' },
  ],
  [
    `${URL}?shema=jobs`,
    {
      where: `${URL}?shema=jobs`,
      schema: undefined,
      wrong: 'has "shema", which is no setting; did you mean "schema"?',
    },
  ],
])('the schema is taken from the query of a URL: %s', (where, expected) => {
  expect(schemaOf(where)).toEqual(expected)
})

test('a pool has no URL to take a schema from', () => {
  const pool = { connect: () => undefined } as never
  expect(schemaOf(pool)).toEqual({ where: pool, schema: undefined, wrong: undefined })
})

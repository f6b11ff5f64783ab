import { describe, expect, test } from 'vitest'
import { reason, show } from './show.js'

const SECRET = 'ge/he#im@ %41'

describe('a password', () => {
  test.each([
    `postgres://bob:${SECRET}@db/x`,
    ` postgres://bob:${SECRET}@db/x`,
    `\npostgres://bob:${SECRET}@db/x`,
    `"postgres://bob:${SECRET}@db/x"`,
    `jdbc:postgresql://bob:${SECRET}@db/x`,
    `postgres:bob:${SECRET}@db/x`,
    `mysql://bob:${SECRET}@db/x`,
    `postgres://db/x?user=bob&password=geheim`,
    `postgres://bob:${'geheim'.repeat(100)}@db/x`,
  ])('in a URL is not shown: %j', (address) => {
    expect(show(address)).not.toMatch(/ge.?he/)
    expect(show(address)).toContain('***')
    expect(show(address)).toContain('db')
  })

  test('in a URL in another error is not repeated', () => {
    const error = new Error('cannot connect to postgres://bob:geheim@db/x: ask ada@example.com')
    expect(reason(error)).toBe('cannot connect to postgres://bob:***@db/x: ask ada@example.com')
    const other = new Error('postgres://db:5432/x: ask ada@example.com')
    expect(reason(other)).toBe(other.message)
  })

  test.each(['mail:7:ada@example.com', 'http://localhost:3000/a', 'postgres://localhost:5432/app', 'ada@example.com'])(
    'is not found where there is none: %j',
    (text) => {
      expect(show(text)).toBe(JSON.stringify(text))
    },
  )
})

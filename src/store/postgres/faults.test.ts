import { describe, expect, test } from 'vitest'
import { translate } from './faults.js'

const told = (code: string | undefined, message: string): { code?: string; message: string } =>
  translate(Object.assign(new Error(message), code === undefined ? {} : { code }), 'db') as Error

describe('an error of the server', () => {
  test('that says of a lock is told as what is over, not as what will be tried', () => {
    const { code, message } = told('55P03', 'canceling statement due to lock timeout')
    expect(code).toBe('E_STORE_LOCKED')
    expect(message).toMatch(/nothing was written; end it/)
    expect(message).not.toMatch(/tried again/)
  })

  test.each([
    ['53300', 'sorry, too many clients already', 'E_STORE_UNREACHABLE', /max_connections/],
    [undefined, 'The server does not support SSL connections', 'E_STORE_UNREACHABLE', /take sslmode/],
    [undefined, 'Query read timeout', 'E_STORE_UNREACHABLE', /query_timeout/],
    ['ECONNREFUSED', 'connect ECONNREFUSED', 'E_STORE_UNREACHABLE', /check that it runs/],
    ['57014', 'canceling statement due to statement timeout', 'E_STORE', /raise it/],
    ['57014', 'canceling statement due to user request', 'E_STORE', /user request \(57014\)$/],
    ['42501', 'permission denied for table jobs', 'E_STORE_RIGHTS', /as a role that owns the schema, grant/],
  ])('%s, %s, is told with what fits', (state, said, code, advice) => {
    expect(told(state, said)).toMatchObject({ code, message: expect.stringMatching(advice) })
  })
})

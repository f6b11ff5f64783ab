import { describe, expect, test } from 'vitest'
import { lostReply, ReplyLostError, translate } from './faults.js'

const translated = (code: string | undefined, message: string): { code?: string; message: string } =>
  translate(Object.assign(new Error(message), code === undefined ? {} : { code }), 'db') as Error

describe('an error of the server', () => {
  test('about a lock says that the call failed, and promises no retry', () => {
    const { code, message } = translated('55P03', 'canceling statement due to lock timeout')
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
  ])('%s, %s, is translated with fitting advice', (state, message, code, advice) => {
    expect(translated(state, message)).toMatchObject({ code, message: expect.stringMatching(advice) })
  })
})

describe('a write that failed (L4)', () => {
  const failed = (fields: object, message: string, isDirect = true): unknown =>
    lostReply(Object.assign(new Error(message), fields), 'db', isDirect)

  test.each([
    ['the connection is cut', {}, 'Connection terminated unexpectedly', true],
    ['the connection is reset', { code: 'ECONNRESET' }, 'read ECONNRESET', true],
    ['no answer comes in time', { code: 'ETIMEDOUT' }, 'there was no answer for 10 s', true],
    ['a pooler lost the server', { code: '08P01', severity: 'FATAL' }, 'server conn crashed?', false],
    ['a pooler says that it ends', { code: '57P01', severity: 'FATAL' }, 'shutting down', false],
  ])('may have been written when %s', (_, fields, message, isDirect) => {
    expect(failed(fields, message, isDirect)).toBeInstanceOf(ReplyLostError)
    expect(failed(fields, message, isDirect)).toMatchObject({ code: 'E_STORE_UNREACHABLE', name: 'StoreError' })
  })

  test.each([
    ['it was not sent', {}, 'Client has encountered a connection error and is not queryable', 'E_STORE_UNREACHABLE'],
    ['the server ended it', { code: '57P01', severity: 'FATAL' }, 'terminating connection', 'E_STORE_UNREACHABLE'],
    ['the server is read-only', { code: '25006', severity: 'ERROR' }, 'cannot execute INSERT', 'E_STORE_READ_ONLY'],
    ['the server refused it', { code: '23505', severity: 'ERROR' }, 'duplicate key', 'E_STORE'],
  ])('was not written when %s', (_, fields, message, code) => {
    expect(failed(fields, message)).not.toBeInstanceOf(ReplyLostError)
    expect(failed(fields, message)).toMatchObject({ code })
  })
})

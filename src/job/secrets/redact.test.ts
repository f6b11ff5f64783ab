import { describe, expect, test } from 'vitest'
import { isRedact, REDACTED, Redactor } from './redact.js'
import type { RedactRule } from './redact.js'

const hide = (...rules: readonly RedactRule[]): Redactor => new Redactor(rules)

describe('a redactor', () => {
  test('hides the values of names at any depth, whatever their case, and changes nothing that it is given', () => {
    const given = { card: '4111', user: { Card: 1, name: 'Ada', list: [{ CARD: {} }, 'x'] }, at: new Date(5) }
    expect(hide('card').value(given, 'payload')).toEqual({
      card: REDACTED,
      user: { Card: REDACTED, name: 'Ada', list: [{ CARD: REDACTED }, 'x'] },
      at: new Date(5),
    })
    expect(given.user.Card).toBe(1)
  })

  test('hides what patterns and functions say, also twice, and what a function throws at', () => {
    const given = { authToken: 'a', token: 'b', open: 'c' }
    for (let i = 0; i < 2; i += 1)
      expect(hide(/token$/gi).value(given, 'payload')).toEqual({ authToken: REDACTED, token: REDACTED, open: 'c' })
    const seen: unknown[] = []
    const byPlace = hide((place) => {
      seen.push(place)
      return place.path === 'payload.user[0].pin' && place.role !== 'admin'
    })
    expect(byPlace.value({ user: [{ pin: 1 }] }, 'payload', 'viewer')).toEqual({ user: [{ pin: REDACTED }] })
    expect(byPlace.value({ user: [{ pin: 1 }] }, 'payload', 'admin')).toEqual({ user: [{ pin: 1 }] })
    expect(seen[0]).toEqual({ path: 'payload.user', role: 'viewer' })
    const broken = hide(() => {
      throw new Error('broken')
    })
    expect(broken.value({ a: 1 }, 'payload')).toEqual({ a: REDACTED })
  })

  test('reads maps and sets, and hides what is nested too deep to be read', () => {
    const shown = hide('pin').value({ map: new Map([['pin', 1]]), set: new Set([{ pin: 2 }]) }, 'payload')
    expect(shown).toEqual({ map: new Map([['pin', REDACTED]]), set: new Set([{ pin: REDACTED }]) })
    let deep: unknown = 'end'
    for (let i = 0; i < 5_000; i += 1) deep = { deep }
    expect(JSON.stringify(hide('pin').value(deep, 'payload'))).toContain(REDACTED)
  })

  test.each([
    ['card=4111 was refused', `card=${REDACTED} was refused`],
    ['card: 4111, amount: 5', `card: ${REDACTED}, amount: 5`],
    ['charging {"card":"41\\"11","amount":5}', `charging {"card":${REDACTED},"amount":5}`],
    ["{ card: '4111' }", `{ card: ${REDACTED} }`],
    ['{"card":{"number":"4111","card":[1]},"amount":5}', `{"card":${REDACTED},"amount":5}`],
    ['{"card":["}",{"a":1', `{"card":${REDACTED}`],
    ['card: Visa ending 4111\nnext line', `card: ${REDACTED}\nnext line`],
    ['discard=1 cards: 2 my.card=3', 'discard=1 cards: 2 my.card=3'],
    ['card=', 'card='],
    ['no names', 'no names'],
  ])('hides the value of a name in a text: %s', (given, shown) => {
    expect(hide('card').text(given)).toBe(shown)
  })

  test('takes a long text without stalling', () => {
    // The test's own time limit ends a search that is not linear.
    for (const text of ['a '.repeat(200_000), 'card{'.repeat(50_000), 'card:'.repeat(50_000)])
      expect(hide('pin').text(text)).toBe(text)
  })

  test('hides in errors and in whole records', () => {
    const error = {
      name: 'HttpError',
      message: 'card=4111',
      stack: 'HttpError: card=4111\n    at x',
      props: { card: '4111', status: 402 },
      cause: { name: 'Error', message: '"card":"4111"' },
      errors: [{ name: 'Error', message: 'card: 4111' }],
    }
    const record = {
      payload: { card: '4111' },
      result: { card: '4111' },
      meta: { card: '4111' },
      captured: { card: '4111' },
      title: 'card: 4111',
      reason: 'card=4111',
      raw: '4111',
      error,
      attempts: [{ startedAt: new Date(0), endedAt: new Date(0), worker: 'w', error, log: ['card=4111'] }],
    }
    const shown = JSON.stringify(hide('card').record(record as never))
    expect(shown).not.toContain('4111')
    expect(shown).toContain('"status":402')
  })

  test('is checked: a list of names, patterns and functions', () => {
    expect(isRedact(['card', /token/, () => true])).toEqual([])
    expect(isRedact('card')).toMatch(
      'must be a list of key names, patterns and functions, got "card"; did you mean ["card"]?',
    )
    expect(isRedact([5, ''])).toMatchObject([{ path: '[0]' }, { path: '[1]' }])
  })
})

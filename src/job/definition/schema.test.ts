import * as v from 'valibot'
import { describe, expect, test } from 'vitest'
import type { Checked, SchemaResult } from './schema.js'
import { checkPayload } from './schema.js'

function schema(validate: (value: unknown) => SchemaResult<unknown> | Promise<SchemaResult<unknown>>): {
  input: { '~standard': { version: 1; vendor: string; validate: typeof validate } }
} {
  return { input: { '~standard': { version: 1, vendor: 'by hand', validate } } }
}

describe('a payload is checked', () => {
  test('by nothing when the job has no check', () => {
    const payload = { any: 'thing' }
    expect(checkPayload({}, payload)).toEqual({ ok: true, value: payload })
  })

  test('by accepts, whose false refuses it', () => {
    const rules = { accepts: (p: never) => (p as { n: number }).n > 0 }
    expect(checkPayload(rules, { n: 1 })).toEqual({ ok: true, value: { n: 1 } })
    expect(checkPayload(rules, { n: 0 })).toMatchObject({ ok: false, problems: [{ path: 'payload' }] })
  })

  test('by an asynchronous accepts, and only then is there a promise', async () => {
    const rules = { accepts: (async (p: { n: number }) => p.n > 0) as never }
    expect(checkPayload(rules, { n: 1 })).toBeInstanceOf(Promise)
    expect(await checkPayload(rules, { n: 1 })).toEqual({ ok: true, value: { n: 1 } })
    expect(await checkPayload(rules, { n: 0 })).toMatchObject({ ok: false })
  })

  test('by accepts, whose truthy and falsy values count as true and false', () => {
    expect(checkPayload({ accepts: () => 'yes' as never }, 1)).toMatchObject({ ok: true })
    for (const no of ['', 0, null, undefined])
      expect(checkPayload({ accepts: () => no as never }, 1)).toMatchObject({ ok: false })
  })

  test('by a schema, whose output is passed to the handler', () => {
    const rules = schema((value) => ({ value: `${String(value)}!` }))
    expect(checkPayload(rules, 'a')).toEqual({ ok: true, value: 'a!' })
  })

  test('by a schema, all of whose issues become problems with paths', () => {
    const rules = schema(() => ({
      issues: [
        { message: 'is bad' },
        { message: 'is worse', path: ['user', 'name'] },
        { message: 'is odd', path: [{ key: 'list' }, 3, { key: 'x' }] },
        { message: 'is strange', path: [Symbol('s')] },
      ],
    }))
    expect(checkPayload(rules, {})).toEqual({
      ok: false,
      problems: [
        { path: 'payload', message: 'is bad' },
        { path: 'payload.user.name', message: 'is worse' },
        { path: 'payload.list[3].x', message: 'is odd' },
        { path: 'payload.Symbol(s)', message: 'is strange' },
      ],
    })
  })

  test('by an asynchronous schema, and only then is there a promise', async () => {
    const rules = schema(async (value) => (value === 1 ? { value: 2 } : { issues: [{ message: 'is not 1' }] }))
    const checked = checkPayload(rules, 1)
    expect(checked).toBeInstanceOf(Promise)
    expect(await checked).toEqual({ ok: true, value: 2 })
    expect(await checkPayload(rules, 5)).toEqual({ ok: false, problems: [{ path: 'payload', message: 'is not 1' }] })
  })

  test('by valibot, with its paths and its transforms', () => {
    const input = v.object({
      to: v.pipe(v.string(), v.email()),
      at: v.pipe(
        v.string(),
        v.transform((text) => new Date(text)),
      ),
      tags: v.array(v.string()),
    })
    expect(checkPayload({ input }, { to: 'a@b.cc', at: '2026-01-01T00:00:00Z', tags: [] })).toEqual({
      ok: true,
      value: { to: 'a@b.cc', at: new Date('2026-01-01T00:00:00Z'), tags: [] },
    })
    const refused = checkPayload({ input }, { to: 'nobody', at: 'x', tags: ['a', 5] }) as Extract<
      Checked,
      { ok: false }
    >
    expect(refused.problems.map((p) => p.path)).toEqual(['payload.to', 'payload.tags[1]'])
    expect(refused.problems.every((p) => p.message.length > 0)).toBe(true)
  })

  test('by an asynchronous valibot schema', async () => {
    const input = v.pipeAsync(
      v.string(),
      v.checkAsync(async (text) => text === 'free', 'is taken'),
    )
    expect(await checkPayload({ input }, 'free')).toEqual({ ok: true, value: 'free' })
    expect(await checkPayload({ input }, 'held')).toEqual({
      ok: false,
      problems: [{ path: 'payload', message: 'is taken' }],
    })
  })

  // A promise of another realm or library is not `instanceof Promise`; its payload would pass unchecked, as undefined.
  test('by a schema that returns a thenable', async () => {
    const settled: SchemaResult<unknown> = { issues: [{ message: 'is bad' }] }
    // oxlint-disable-next-line unicorn/no-thenable
    const thenable = { then: (done: (result: SchemaResult<unknown>) => void) => done(settled) }
    expect(
      await checkPayload(
        schema(() => thenable as never),
        1,
      ),
    ).toMatchObject({ ok: false })
  })
})

import { expect } from 'vitest'
import { codec, job } from '../../src/index.js'
import type { JobRecord } from '../../src/index.js'
import type { Bench, Bound } from './bound.js'
import { noop, refusedAbove, text } from './bound.js'

type ErrorRecord = NonNullable<JobRecord['error']>

/** Throws what the case gives it. */
const fails = job<undefined, unknown>('fails', {
  run: async () => {
    throw thrown.value
  },
  retry: { limit: 0 },
})
const thrown: { value: unknown } = { value: undefined }

/** The record of what a handler threw. */
async function recordOf(bench: Bench, value: unknown): Promise<ErrorRecord> {
  const kit = await bench.kit({ jobs: [fails] })
  thrown.value = value
  const handle = await kit.mill.enqueue(fails)
  await kit.drain()
  return (await handle.get())?.error as ErrorRecord
}

/** An error whose stack is short, so that the sizes of a case are its own. */
function errorOf(message: string, more: object = {}): Error {
  const error = Object.assign(new Error(message), more)
  error.stack = ''
  return error
}

function nested(depth: number): unknown {
  let value: unknown = []
  for (let left = depth; left > 1; left -= 1) value = [value]
  return value
}

const bytesOf = (value: unknown): number => Buffer.byteLength(JSON.stringify(value))

/** Limits of what is written, and of what messages and records repeat of the caller's values. */
export const codecLimits: readonly Bound[] = [
  {
    of: 'src/codec/limits.ts#DEPTH_MAX',
    at: 1000,
    on: 'none',
    holds: async (size) => {
      const { encode, decode } = codec({})
      const refusal = { code: 'E_CODEC', text: /nested more than 1000 levels deep/ }
      const written = await refusedAbove(size, 1000, () => encode(nested(size)), refusal)
      if (written !== undefined) expect(JSON.stringify(decode(written))).toBe(JSON.stringify(nested(size)))
      // A value of another kind takes the slow way of the writer.
      const slow = await refusedAbove(size, 1000, () => encode([nested(size - 1), new Date(0)]), refusal)
      if (slow !== undefined) expect(decode(slow)).toEqual([nested(size - 1), new Date(0)])
    },
  },
  {
    of: 'src/codec/limits.ts#PARTS_MAX',
    at: 5_000_000,
    on: 'none',
    isLong: true,
    holds: async (size) => {
      // The list is a part itself.
      const wide = new Array(size - 1).fill(0)
      await refusedAbove(size, 5_000_000, () => codec({}).encode(wide), { code: 'E_CODEC', text: /5000000 parts/ })
    },
  },
  {
    of: 'src/codec/path.ts#SEGMENTS_SHOWN',
    at: 24,
    on: 'none',
    holds: async (size, bench) => {
      const { mill } = await bench.kit()
      let payload: unknown = Symbol('unwritable')
      for (let left = size; left > 0; left -= 1) payload = [payload]
      const error = await mill.enqueue(noop, payload).catch((refused: unknown) => refused as Error)
      const shown = `payload${'[0]'.repeat(Math.min(size, 24) / (size > 24 ? 2 : 1))}`
      expect((error as Error).message).toContain(size <= 24 ? `${shown} ` : `${shown}…(1 more)…`)
    },
  },
  {
    of: 'src/codec/path.ts#KEY_SHOWN_MAX',
    at: 60,
    on: 'none',
    holds: async (size, bench) => {
      const { mill } = await bench.kit()
      const error = await mill
        .enqueue(noop, { [text(size)]: Symbol('unwritable') })
        .catch((refused: unknown) => refused)
      expect((error as Error).message.includes(`payload.${text(size)}`)).toBe(size <= 60)
    },
  },
  {
    of: 'src/codec/show.ts#SHOWN_MAX',
    at: 60,
    on: 'none',
    holds: async (size, bench) => {
      const { mill } = await bench.kit()
      const error = await mill.enqueue(noop, {}, { in: text(size) as never }).catch((refused: unknown) => refused)
      const shown = size <= 60 ? `got "${text(size)}"` : `got "${text(60)}"… (61 characters)`
      expect((error as Error).message).toContain(shown)
    },
  },
  {
    of: 'src/codec/show.ts#REASON_MAX',
    at: 500,
    on: 'none',
    holds: async (size, bench) => {
      const picky = job<unknown, unknown>('picky', {
        run: async () => undefined,
        title: () => {
          throw new Error(text(size))
        },
      })
      const { mill } = await bench.kit()
      const error = await mill.enqueue(picky, {}).catch((refused: unknown) => refused)
      expect((error as Error).message).toContain(size <= 500 ? text(size) : `${text(500)}…`)
      expect((error as Error).message.includes(text(501))).toBe(false)
    },
  },
  {
    of: 'src/codec/show.ts#COVERED_MAX',
    at: 4_000,
    on: 'none',
    holds: async (size, bench) => {
      const { mill } = await bench.kit()
      // The password ends within what is searched, or not; the message repeats no character of it in either case.
      const url = `postgres://user:${'s'.repeat(size - 17)}@host/db`
      const error = await mill.enqueue(noop, {}, { in: url as never }).catch((refused: unknown) => refused)
      expect((error as Error).message.includes('ssss')).toBe(false)
    },
  },
  {
    of: 'src/codec/preview.ts#ENTRIES_MAX',
    at: 20,
    on: 'none',
    holds: async (size, bench) => {
      const shown = (count: number): string =>
        Array.from({ length: Math.min(count, 20) }, (_, i) => String(i)).join(', ') + (count > 20 ? ', … 1 more' : '')
      const list = await recordOf(
        bench,
        Array.from({ length: size }, (_, i) => i),
      )
      expect(list.message).toBe(`[${shown(size)}]`)
      const entries = Array.from({ length: size }, (_, i) => [`f${i}`, i])
      const { message } = await recordOf(bench, Object.fromEntries(entries))
      expect(message.includes('… 1 more')).toBe(size > 20)
      expect(message.includes(`"f${Math.min(size, 20) - 1}"`)).toBe(true)
    },
  },
  {
    of: 'src/codec/near-name.ts#COMPARED_MAX',
    at: 64,
    on: 'none',
    holds: async (size, bench) => {
      const near = job<undefined, unknown>(text(size), async () => undefined)
      const { mill } = await bench.kit()
      mill.register(near)
      const error = await mill.enqueue(`x${text(size - 1)}`).catch((refused: unknown) => refused)
      expect((error as Error).message.includes('did you mean')).toBe(size <= 64)
    },
  },
  {
    of: 'src/codec/error-text.ts#LIMIT_BYTES',
    at: 65_536,
    on: 'both',
    holds: async (size, bench) => {
      // Half of the room is the message's: 100 bytes are for the field names, 7 for the name, 2 for no type, 24 for no code.
      const room = Math.floor((65_536 - 100 - 7 - 2 - 24) / 2)
      const message = text(room - 2 + (size - 65_536))
      const record = await recordOf(bench, errorOf(message))
      expect(record.message === message).toBe(size <= 65_536)
      const large = await recordOf(bench, Object.assign(new Error(text(size)), { cause: new Error(text(size)) }))
      expect(bytesOf(large)).toBeLessThanOrEqual(65_536)
      expect(large.message).toContain(' more characters]')
    },
  },
  {
    of: 'src/codec/error-text.ts#CAUSES_MAX',
    at: 8,
    on: 'none',
    holds: async (size, bench) => {
      let error = new Error('cause 0')
      for (let i = 1; i <= size; i += 1) error = new Error(`cause ${i}`, { cause: error })
      const messages: string[] = []
      for (let at: ErrorRecord | undefined = (await recordOf(bench, error)).cause; at !== undefined; at = at.cause)
        messages.push(at.message)
      expect(messages).toHaveLength(Math.min(size, 8))
    },
  },
  {
    of: 'src/codec/error-text.ts#ERRORS_MAX',
    at: 8,
    on: 'none',
    holds: async (size, bench) => {
      const errors = Array.from({ length: size }, (_, i) => errorOf(`error ${i}`))
      const record = await recordOf(bench, new AggregateError(errors, 'all of them'))
      expect(record.errors).toHaveLength(Math.min(size, 8))
    },
  },
  {
    of: 'src/codec/error-text.ts#LABEL_BYTES',
    at: 256,
    on: 'none',
    holds: async (size, bench) => {
      const label = text(size - 2)
      const record = await recordOf(bench, errorOf('named', { name: label, code: label }))
      expect(record.name === label && record.code === label).toBe(size <= 256)
      expect([bytesOf(record.name), bytesOf(record.code)].every((bytes) => bytes <= 256)).toBe(true)
    },
  },
  {
    of: 'src/codec/error-text.ts#PROPS_BYTES',
    at: 4_096,
    on: 'none',
    holds: async (size, bench) => {
      // Each field takes its name in quotes, two bytes, and its text in quotes.
      const field = (name: string, bytes: number): object => ({ [name]: text(bytes - 7) })
      const props = { ...field('a', 1_000), ...field('b', 1_000), ...field('c', 1_000), ...field('d', 1_000) }
      const record = await recordOf(bench, errorOf('with fields', { ...props, ...field('e', size - 4_000) }))
      expect(Object.keys(record.props ?? {})).toEqual(size <= 4_096 ? ['a', 'b', 'c', 'd', 'e'] : ['a', 'b', 'c', 'd'])
    },
  },
  {
    of: 'src/codec/error-text.ts#PROP_TEXT_BYTES',
    at: 1_024,
    on: 'none',
    holds: async (size, bench) => {
      const status = text(size - 2)
      const record = await recordOf(bench, errorOf('with a field', { status }))
      expect(record.props?.['status'] === status).toBe(size <= 1_024)
      expect(bytesOf(record.props?.['status'])).toBeLessThanOrEqual(1_024)
    },
  },
]

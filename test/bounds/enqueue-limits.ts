import { AsyncLocalStorage } from 'node:async_hooks'
import { expect } from 'vitest'
import { refuseTooManyLinks } from '../../src/client/enqueue/parent-links.js'
import { category, job } from '../../src/index.js'
import { Redactor } from '../../src/job/secrets/redact.js'
import { lengthOf, noop, payloads, refusedAbove, text } from './bound.js'
import type { Bound } from './bound.js'

const INVALID = 'E_INVALID_OPTIONS'
const ID = '01990000-0000-7000-8000-000000000000'

/** Limits of the arguments of one enqueue: what fits is stored whole, and what does not is refused by name. */
export const enqueueLimits: readonly Bound[] = [
  {
    of: 'src/job/definition/check-text.ts#NAME_MAX',
    at: 200,
    on: 'both',
    holds: async (size, bench) => {
      const { mill } = await bench.kit({})
      const refusal = { code: INVALID, text: /must have 1 to 200 characters, got 201/ }
      const name = text(size)
      const named = await refusedAbove(size, 200, () => job(name, async () => undefined), refusal)
      await refusedAbove(size, 200, () => category(name), refusal)
      await refusedAbove(size, 200, () => mill.queue(name).pause(), refusal)
      await refusedAbove(size, 200, () => mill.recurring(name, named ?? noop, undefined, '0 9 * * *'), refusal)
      const options = { queue: name, group: name }
      const handle = await refusedAbove(size, 200, () => mill.enqueue(named ?? noop, undefined, options), refusal)
      if (handle === undefined) return
      expect(await handle.get()).toMatchObject({ job: name, queue: name, group: name })
      expect(await lengthOf(mill.find({ queue: name, group: name }))).toBe(1)
      expect(await mill.group(name).progress()).toMatchObject({ total: 1 })
      expect(await mill.schedules.get(name)).toMatchObject({ id: name })
    },
  },
  {
    of: 'src/job/definition/check-text.ts#KEY_MAX',
    at: 500,
    on: 'both',
    holds: async (size, bench) => {
      const { mill } = await bench.kit()
      const key = text(size)
      const refusal = { code: INVALID, text: /must have 1 to 500 characters, got 501/ }
      const handle = await refusedAbove(size, 500, () => mill.enqueue(noop, {}, { key }), refusal)
      if (handle === undefined) return
      expect(await handle.get()).toMatchObject({ key })
      expect(await mill.enqueue(noop, {}, { key })).toMatchObject({ id: handle.id, isNew: false })
      expect(await lengthOf(mill.find({ key }))).toBe(1)
    },
  },
  {
    of: 'src/job/definition/check-options.ts#TITLE_MAX',
    at: 500,
    on: 'both',
    holds: async (size, bench) => {
      const { mill } = await bench.kit()
      const title = text(size)
      const refusal = { code: INVALID, text: /must be text of at most 500 characters/ }
      const handle = await refusedAbove(size, 500, () => mill.enqueue(noop, {}, { title }), refusal)
      if (handle !== undefined) expect(await handle.get()).toMatchObject({ title })
      // A title that its payload makes longer is cut: the caller gave a short one.
      const filled = await mill.enqueue(noop, { name: title }, { title: '{name}' })
      expect((await filled.get())?.title).toBe(text(Math.min(size, 500)))
    },
  },
  {
    of: 'src/job/definition/title.ts#FIELD_PATH_MAX',
    at: 100,
    on: 'none',
    holds: async (size, bench) => {
      const { mill } = await bench.kit()
      const field = text(size)
      const handle = await mill.enqueue(noop, { [field]: 'filled' }, { title: `{${field}}` })
      expect((await handle.get())?.title).toBe(size <= 100 ? 'filled' : `{${field}}`)
    },
  },
  {
    of: 'src/job/definition/check-options.ts#LABELS_MAX',
    at: 16,
    on: 'both',
    holds: async (size, bench) => {
      const { mill } = await bench.kit()
      const labels = Array.from({ length: size }, (_, i) => `of ${size} ${i}`)
      const refusal = { code: INVALID, text: /must be at most 16, got 17/ }
      const handle = await refusedAbove(size, 16, () => mill.enqueue(noop, {}, { labels }), refusal)
      if (handle === undefined) return
      expect(await handle.get()).toMatchObject({ labels })
      for (const label of [labels[0], labels.at(-1)]) expect(await lengthOf(mill.find({ label }))).toBe(1)
    },
  },
  {
    of: 'src/job/definition/check-options.ts#LABELS_MAX',
    at: 16,
    on: 'none',
    when: 'those of the definition and of the call together',
    holds: async (size, bench) => {
      const labelled = job('labelled', { run: async () => undefined, labels: ['a', 'b'] })
      const { mill } = await bench.kit({ jobs: [] })
      const labels = Array.from({ length: size - 2 }, (_, i) => `${i}`)
      const call = () => mill.enqueue(labelled, undefined, { labels })
      await refusedAbove(size, 16, call, { code: INVALID, text: /at most 16/ })
    },
  },
  {
    of: 'src/job/definition/check-options.ts#LABEL_MAX',
    at: 100,
    on: 'both',
    holds: async (size, bench) => {
      const { mill } = await bench.kit()
      const label = text(size)
      const refusal = { code: INVALID, text: /must have 1 to 100 characters, got 101/ }
      const handle = await refusedAbove(size, 100, () => mill.enqueue(noop, {}, { labels: [label] }), refusal)
      if (handle !== undefined) expect(await lengthOf(mill.find({ label }))).toBe(1)
    },
  },
  {
    of: 'src/job/definition/check-options.ts#PRIORITY_MAX',
    at: 1_000_000,
    on: 'both',
    holds: async (size, bench) => {
      const kit = await bench.kit()
      const refusal = { code: INVALID, text: /whole number from -1000000 to 1000000/ }
      const queue = `of ${size}`
      const enqueue = (priority: number) => kit.mill.enqueue(noop, { priority }, { queue, priority })
      await refusedAbove(size, 1_000_000, () => enqueue(-size), refusal)
      await refusedAbove(size, 1_000_000, () => enqueue(size), refusal)
      if (size > 1_000_000) return
      await enqueue(-size + 1)
      await enqueue(size - 1)
      const ran: number[] = []
      for (let left = 4; left > 0; left -= 1) {
        await kit.consume(queue)
        for await (const { priority } of kit.mill.find({ queue, state: 'done' }))
          if (!ran.includes(priority)) ran.push(priority)
      }
      expect(ran).toEqual([size, size - 1, -size + 1, -size])
    },
  },
  {
    of: 'src/job/definition/upcast.ts#UPCASTS_MAX',
    at: 1_000,
    on: 'none',
    holds: async (size) => {
      const upcast = Array.from({ length: size }, () => (p: unknown) => p)
      const refusal = { code: INVALID, text: /upcast must be at most 1000, got 1001/ }
      await refusedAbove(size, 1_000, () => job('x', { run: () => 1, upcast }), refusal)
    },
  },
  {
    of: 'src/job/secrets/redact.ts#DEPTH_MAX',
    at: 100,
    on: 'none',
    holds: (size) => {
      let nested: unknown = { end: 1 }
      for (let depth = 0; depth < size; depth += 1) nested = { nested }
      const shown = JSON.stringify(new Redactor(['secret']).value(nested, 'payload'))
      expect(shown.includes('"end"')).toBe(size <= 100)
    },
  },
  {
    of: 'src/job/definition/check-options.ts#UNIQUE_FIELDS_MAX',
    at: 16,
    on: 'both',
    holds: async (size, bench) => {
      const { mill } = await bench.kit()
      const by = Array.from({ length: size }, (_, i) => `f${i}`)
      const payload = Object.fromEntries(by.map((field) => [field, size]))
      const call = (last: number) =>
        mill.enqueue(noop, { ...payload, [`f${size - 1}`]: last }, { unique: { by: by as never } })
      const refusal = { code: INVALID, text: /must name 1 to 16 fields, got 17/ }
      if ((await refusedAbove(size, 16, () => call(1), refusal)) === undefined) return
      expect(await call(1)).toMatchObject({ isNew: false })
      expect(await call(2)).toMatchObject({ isNew: true })
    },
  },
  {
    of: 'src/job/rules/unique.ts#KEY_TEXT_MAX',
    at: 200,
    on: 'both',
    holds: async (size, bench) => {
      const { mill } = await bench.kit()
      // A text is written in quotes. Two long values differ in their last character only.
      const value = text(size - 2)
      const call = (payload: string) => mill.enqueue(noop, payload, { unique: {} })
      expect(await call(value)).toMatchObject({ isNew: true })
      expect(await call(value)).toMatchObject({ isNew: false })
      expect(await call(`${value.slice(1)}x`)).toMatchObject({ isNew: true })
    },
  },
  {
    of: 'src/job/definition/check-after.ts#AFTER_MAX',
    at: 20_000,
    on: 'both',
    holds: async (size, bench) => {
      const { mill } = await bench.kit()
      // The store answers for a list that is short enough: there is no such parent.
      const call = mill.enqueue(noop, {}, { after: Array.from({ length: size }, () => ID) })
      await expect(call).rejects.toMatchObject(
        size <= 20_000
          ? { code: 'E_PARENT_MISSING' }
          : { code: INVALID, message: expect.stringMatching(/at most 20000 jobs, got 20001/) as unknown },
      )
    },
  },
  {
    of: 'src/job/definition/check-after.ts#WRONG_MAX',
    at: 20,
    on: 'none',
    holds: async (size, bench) => {
      const { mill } = await bench.kit()
      const call = mill.enqueue(noop, {}, { after: Array.from({ length: size }, () => 'wrong') })
      const error = await call.catch((thrown: unknown) => thrown as { problems: readonly unknown[] })
      expect((error as { problems: readonly unknown[] }).problems).toHaveLength(Math.min(size, 20))
    },
  },
  {
    of: 'src/client/enqueue/bulk.ts#WRONG_MAX',
    at: 20,
    on: 'none',
    holds: async (size, bench) => {
      const { mill } = await bench.kit()
      const wrong = Array.from({ length: size }, () => Symbol('unwritable'))
      const error = await problemsOf(mill.enqueueMany(noop, [...wrong, { fine: true }]))
      expect(error.problems).toHaveLength(Math.min(size, 20))
      expect(error.message.includes('not checked')).toBe(size >= 20)
    },
  },
  {
    of: 'src/client/flow/flow-rows.ts#WRONG_MAX',
    at: 20,
    on: 'none',
    holds: async (size, bench) => {
      const { mill } = await bench.kit()
      const call = mill.flow((f) => {
        for (let i = 0; i < size; i += 1) f.add(noop, Symbol('unwritable'))
      })
      expect((await problemsOf(call)).problems).toHaveLength(Math.min(size, 20))
    },
  },
  {
    of: 'src/client/enqueue/bulk.ts#BULK_MAX',
    at: 1_000_000,
    on: 'none',
    isLong: true,
    holds: async (size, bench) => {
      const { mill } = await bench.kit()
      // The items of a bulk that is not too long are checked, and all of them are wrong: nothing is written.
      const wrong = Symbol('unwritable')
      const error = await problemsOf(
        mill.enqueueMany(
          noop,
          Array.from({ length: size }, () => wrong),
        ),
      )
      expect(error.code).toBe(size <= 1_000_000 ? 'E_INVALID_PAYLOAD' : INVALID)
    },
  },
  {
    of: 'src/client/flow/flow.ts#FLOW_MAX',
    at: 100_000,
    on: 'none',
    isLong: true,
    holds: async (size, bench) => {
      const { mill } = await bench.kit()
      const stopped = new Error('enough')
      const call = mill.flow((f) => {
        for (let i = 0; i < size; i += 1) f.add(noop, i)
        throw stopped
      })
      await expect(call).rejects.toThrow(size <= 100_000 ? 'enough' : /was called more than 100000 times/)
    },
  },
  {
    of: 'src/client/enqueue/parent-links.ts#LINKS_MAX',
    at: 1_000_000,
    on: 'none',
    holds: async (size) => {
      // The rows of a bulk: the ids of a million parents would be checked one by one before.
      const after = Array.from({ length: 20_000 }, () => ({ id: ID }))
      const jobs = Math.ceil(size / 20_000)
      const rows = payloads(jobs).map(({ n }) => ({
        after: n === jobs - 1 ? after.slice(0, size - n * 20_000) : after,
      }))
      const refusal = {
        code: INVALID,
        text: /after must be at most 1000000 in one call, all jobs together, got 1000001/,
      }
      await refusedAbove(size, 1_000_000, () => refuseTooManyLinks(rows as never, 'enqueueMany()'), refusal)
    },
  },
  {
    of: 'src/client/enqueue/prepare.ts#PAYLOAD_MAX_BYTES',
    at: 1024 * 1024,
    on: 'both',
    isLong: 'postgres',
    holds: async (size, bench) => {
      const { mill } = await bench.kit()
      const payload = text(size - 2)
      const refusal = { code: 'E_PAYLOAD_TOO_LARGE', text: /1048577 bytes/ }
      const handle = await refusedAbove(size, 1024 * 1024, () => mill.enqueue(noop, payload), refusal)
      if (handle !== undefined) expect((await handle.get())?.payload === payload).toBe(true)
    },
  },
  {
    of: 'src/client/enqueue/meta.ts#META_MAX_BYTES',
    at: 64 * 1024,
    on: 'both',
    holds: async (size, bench) => {
      const { mill } = await bench.kit()
      const meta = text(size - 2)
      const refusal = { code: INVALID, text: /has 65537 bytes and the limit is 65536/ }
      const handle = await refusedAbove(size, 64 * 1024, () => mill.enqueue(noop, {}, { meta }), refusal)
      const edited = await mill.enqueue(noop, {})
      await refusedAbove(size, 64 * 1024, () => mill.edit(edited.id, { meta }), refusal)
      if (handle === undefined) return
      expect((await handle.get())?.meta === meta).toBe(true)
      expect((await edited.get())?.meta === meta).toBe(true)
    },
  },
  {
    of: 'src/job/attempt/capture.ts#CAPTURED_MAX_BYTES',
    at: 16 * 1024,
    on: 'both',
    holds: async (size, bench) => {
      bench.notes[0] ??= new AsyncLocalStorage<string>()
      const tenant = bench.notes[0] as AsyncLocalStorage<string>
      const { mill } = await bench.kit({ jobs: [noop], capture: { tenant } })
      const refusal = { code: INVALID, text: /has 16385 bytes and the limit is 16384/ }
      const value = text(size - 2)
      const handle = await refusedAbove(size, 16 * 1024, () => tenant.run(value, () => mill.enqueue(noop, {})), refusal)
      if (handle !== undefined) expect((await handle.get())?.captured).toEqual({ tenant: value })
    },
  },
  {
    of: 'src/job/definition/check-options.ts#FACTOR_MAX',
    at: 100,
    on: 'none',
    holds: async (size, bench) => {
      const { mill } = await bench.kit()
      const call = () => mill.enqueue(noop, {}, { retry: { backoff: { factor: size } } })
      await refusedAbove(size, 100, call, { code: INVALID, text: /factor must be a number from 1 to 100, got 101/ })
    },
  },
  {
    of: 'src/errors.ts#MISSING_SHOWN_MAX',
    at: 10,
    on: 'none',
    holds: async (size, bench) => {
      const { mill } = await bench.kit()
      const after = Array.from({ length: size }, (_, i) => `${ID.slice(0, -2)}${i + 10}`)
      const { message } = await problemsOf(mill.enqueue(noop, {}, { after }))
      expect(after.filter((id) => message.includes(id))).toHaveLength(Math.min(size, 10))
      expect(message.includes(' and 1 more')).toBe(size > 10)
    },
  },
  {
    of: 'src/errors.ts#CYCLE_SHOWN_MAX',
    at: 12,
    on: 'none',
    holds: async (size, bench) => {
      const { mill } = await bench.kit()
      // The path of a cycle names its first job twice.
      const call = mill.flow((f) => {
        const nodes = payloads(size - 1).map((payload) => f.add(noop, payload))
        for (const [i, node] of nodes.entries()) node.after(nodes[(i + 1) % nodes.length] as { id: string })
      })
      const { message } = await problemsOf(call)
      expect(message.includes('more …')).toBe(size > 12)
      expect(message.split(' → ')).toHaveLength(Math.min(size, 12))
    },
  },
]

/** The error that a call was refused with. */
async function problemsOf(call: Promise<unknown>): Promise<{
  readonly code: string
  readonly message: string
  readonly problems: readonly unknown[]
}> {
  return call.then(
    () => Promise.reject(new Error('the call was accepted')),
    (error: unknown) => error as Awaited<ReturnType<typeof problemsOf>>,
  )
}

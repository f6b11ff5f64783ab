import { describe, expect, test } from 'vitest'
import { defaultCodec } from '../../codec/codec.js'
import type { UniqueOptions } from '../../job/definition/unique-options.js'
import type { Registered } from '../../job/definition/registry.js'
import { uniqueSlotOf } from './unique-slot.js'

const registered = (unique?: UniqueOptions): Registered => ({ codec: defaultCodec, unique }) as Registered
const payload = { tenant: { id: 7 }, user: 'ada', note: 'x' }

function slot(unique: UniqueOptions, given: unknown = payload) {
  const found = uniqueSlotOf(registered(unique), {}, given, 'payload')
  if (!found.ok) throw new Error(`${found.problem.path} ${found.problem.message}`)
  return found.slot
}

describe('the unique value of an enqueue', () => {
  test.each<[UniqueOptions, string]>([
    [{ by: 'user' }, 'user:"ada"'],
    [{ by: 'tenant.id' }, 'tenant.id:7'],
    [{ by: ['user', 'tenant.id'] }, 'tenant.id:7,user:"ada"'],
    [{ by: ['tenant.id', 'user', 'user'] }, 'tenant.id:7,user:"ada"'],
    [{ by: ((p: { user: string }) => p.user) as never }, '"ada"'],
    [{}, '{"note":"x","tenant":{"id":7},"user":"ada"}'],
  ])('is the text of its fields, whatever their order: %#', (unique, key) => {
    expect(slot(unique)?.key).toBe(key)
  })

  test('of more than 200 characters is its digest', () => {
    const of = (length: number): string | undefined => slot({ by: 'user' }, { user: 'x'.repeat(length) })?.key
    // `user:""` has seven characters.
    expect(of(193)).toBe(`user:"${'x'.repeat(193)}"`)
    expect(of(194)).toMatch(/^sha256 \S{20,}$/)
    expect(of(195)).not.toBe(of(194))
  })

  test.each<[UniqueOptions, string]>([
    [{ by: 'order' }, 'payload.order is missing, and the job is unique by it'],
    [{ by: ['user', 'order.id'] }, 'payload.order.id is missing, and the job is unique by it'],
  ])('needs every field that it is unique by: %#', (unique, message) => {
    expect(() => slot(unique)).toThrow(message)
  })

  test('is held as the options say, and by default while the job is unfinished', () => {
    expect(slot({ by: 'user' })).toMatchObject({ onDuplicate: 'ignore', while: 'unfinished' })
    expect(slot({ by: 'user', onDuplicate: 'reschedule' })).toMatchObject({ while: 'waiting' })
    expect(slot({ by: 'user', onDuplicate: 'reschedule', while: 'unfinished' })).toMatchObject({ while: 'unfinished' })
    expect(slot({ by: 'user', for: '1h' })).toMatchObject({ forMs: 3_600_000 })
  })

  test('does not exist where neither the job nor the enqueue is unique', () => {
    expect(uniqueSlotOf(registered(), {}, payload, 'payload')).toEqual({ ok: true, slot: undefined })
    const off = uniqueSlotOf(registered({ by: 'user' }), { unique: false }, payload, 'payload')
    expect(off).toEqual({ ok: true, slot: undefined })
    const own = uniqueSlotOf(registered({ by: 'user', for: '1h' }), { unique: { by: 'note' } }, payload, 'payload')
    expect(own).toMatchObject({ slot: { key: 'note:"x"', forMs: 3_600_000 } })
  })
})

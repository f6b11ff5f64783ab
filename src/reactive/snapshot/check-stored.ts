import { SerializeError, describe } from '../errors.js'
import { ADDRESS_KINDS } from '../replay/address.js'
import type { StoredContext } from './stored.js'
import { FORMAT, VERSION } from './stored.js'

/** Throws `SerializeError` unless the value is what `serialize` writes: a damaged text must not become half a context. */
export function checkStored(value: unknown): asserts value is StoredContext {
  const stored = recordAt('the snapshot', value)
  if (stored['format'] !== FORMAT) fail('format', JSON.stringify(FORMAT), stored['format'])
  if (stored['version'] !== VERSION) {
    const hint = 'it was written by another version of millrace'
    throw new SerializeError(`version must be ${VERSION}, got ${describe(stored['version'])}; ${hint}`)
  }
  if (stored['clock'] !== 'real' && stored['clock'] !== 'virtual') fail('clock', '"real" or "virtual"', stored['clock'])
  checkTime(stored['now'])
  checkCount('stamp', stored['stamp'])
  checkCount('generation', stored['generation'])
  const last = stored['stamp'] as number
  const cells = recordAt('cells', stored['cells'])
  for (const [addr, cell] of Object.entries(cells)) checkCell(addr, cell, last)
  for (const [index, event] of listAt('queue', stored['queue']).entries()) checkEvent(`queue[${index}]`, event)
  checkTimers(listAt('timers', stored['timers']), cells)
}

/** A spin sleeps at most once at a time. */
function checkTimers(timers: readonly unknown[], cells: Readonly<Record<string, unknown>>): void {
  const asleep = new Set<unknown>()
  for (const [index, timer] of timers.entries()) {
    const { spin, addr, remainingMs } = recordAt(`timers[${index}]`, timer)
    checkText(`timers[${index}].spin`, spin)
    checkText(`timers[${index}].addr`, addr)
    if (!isFiniteNumber(remainingMs) || remainingMs < 0) {
      fail(`timers[${index}].remainingMs`, 'a finite number of 0 or more', remainingMs)
    }
    const cell = Object.hasOwn(cells, spin as string) ? recordAt('cells', cells[spin as string]) : undefined
    if (cell?.['kind'] !== 'spin') fail(`timers[${index}].spin`, 'the address of a stored spin', spin)
    if (asleep.has(spin)) fail(`timers[${index}].spin`, 'a spin without another timer', spin)
    asleep.add(spin)
  }
}

/** `last` is the last stamp that was drawn: a later one would be drawn a second time, and hide a change. */
function checkCell(addr: string, value: unknown, last: number): void {
  const cell = recordAt(addr, value)
  const { kind, observers = [] } = cell
  for (const observer of listAt(`${addr}: observers`, observers)) checkText(`${addr}: observer`, observer)
  if (kind === 'signal') {
    checkCount(`${addr}: changes`, cell['changes'])
    checkCount(`${addr}: stamp`, cell['stamp'], last)
  } else if (kind === 'deferred') checkResult(addr, cell['result'])
  else if (kind === 'mailbox') checkMailbox(addr, cell)
  else if (kind === 'spin') checkSpin(addr, cell, last)
  else fail(`${addr}: kind`, 'signal, deferred, mailbox or spin', kind)
}

function checkMailbox(addr: string, cell: Readonly<Record<string, unknown>>): void {
  checkCount(`${addr}: lastOrder`, cell['lastOrder'])
  for (const message of listAt(`${addr}: messages`, cell['messages'])) {
    checkCount(`${addr}: order of a message`, recordAt(`${addr}: message`, message)['order'])
  }
  for (const taker of listAt(`${addr}: takers`, cell['takers'])) checkText(`${addr}: taker`, taker)
}

function checkSpin(addr: string, cell: Readonly<Record<string, unknown>>, last: number): void {
  checkCount(`${addr}: stamp`, cell['stamp'], last)
  checkResult(addr, cell['result'])
  for (const name of ['isSpawned', 'isRunning', 'isResultMade', 'isCancelled'])
    checkFlag(`${addr}: ${name}`, cell[name])
  for (const [index, value] of listAt(`${addr}: log`, cell['log']).entries()) {
    const path = `${addr}: log[${index}]`
    checkEntry(path, recordAt(path, value), last)
  }
}

function checkEntry(path: string, entry: Readonly<Record<string, unknown>>, last: number): void {
  const { kind, key, value, target = '', isError, stamp = 0, order = 0 } = entry
  if (!ADDRESS_KINDS.some((known) => known === kind)) fail(`${path}.kind`, `one of ${ADDRESS_KINDS.join(', ')}`, kind)
  checkText(`${path}.key`, key)
  checkText(`${path}.path`, entry['path'])
  checkText(`${path}.target`, target)
  checkCount(`${path}.n`, entry['n'])
  checkCount(`${path}.stamp`, stamp, last)
  checkCount(`${path}.order`, order)
  checkFlag(`${path}.isError`, isError)
  if (kind === 'scope') checkCount(`${path}.value.turn`, recordAt(`${path}.value`, value)['turn'])
}

function checkEvent(path: string, value: unknown): void {
  const event = recordAt(path, value)
  checkText(`${path}.addr`, event['addr'])
  const { type } = event
  if (type === 'deferred-delivery') return checkResult(path, recordAt(`${path}.result`, event['result']))
  if (type === 'signal-change' || type === 'mailbox-post') return
  fail(`${path}.type`, 'signal-change, deferred-delivery or mailbox-post', type)
}

function checkResult(path: string, value: unknown): void {
  if (value === undefined) return
  const { ok } = recordAt(`${path}: result`, value)
  if (typeof ok !== 'boolean') fail(`${path}: result.ok`, 'true or false', ok)
}

/** Counters go on from the stored number. Half of the safe whole numbers are left for that. */
const COUNT_MAX = 2 ** 52

function checkCount(path: string, value: unknown, max = COUNT_MAX): void {
  if (Number.isInteger(value) && (value as number) >= 0 && (value as number) <= max) return
  fail(path, `a whole number from 0 to ${max}`, value)
}

/** The last time that a Date can have. */
const TIME_MAX = 8.64e15

function checkTime(now: unknown): void {
  if (!isFiniteNumber(now) || now < 0 || now > TIME_MAX) fail('now', `a time from 0 to ${TIME_MAX}`, now)
}

function isFiniteNumber(value: unknown): value is number {
  return Number.isFinite(value)
}

function checkFlag(path: string, value: unknown): void {
  if (value !== undefined && value !== true) fail(path, 'true, or left out', value)
}

function checkText(path: string, value: unknown): void {
  if (typeof value !== 'string') fail(path, 'text', value)
}

function listAt(path: string, value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : fail(path, 'a list', value)
}

function recordAt(path: string, value: unknown): Readonly<Record<string, unknown>> {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>
  return fail(path, 'an object', value)
}

function fail(path: string, expected: string, got: unknown): never {
  throw new SerializeError(`this is not a snapshot: ${path} must be ${expected}, got ${describe(got)}`)
}

import { SerializeError, describe } from '../errors.js'
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
  for (const name of ['now', 'stamp', 'generation']) checkCount(name, stored[name])
  for (const [addr, cell] of Object.entries(recordAt('cells', stored['cells']))) checkCell(addr, cell)
  for (const [index, event] of listAt('queue', stored['queue']).entries()) checkEvent(`queue[${index}]`, event)
  for (const [index, timer] of listAt('timers', stored['timers']).entries()) {
    const fields = recordAt(`timers[${index}]`, timer)
    checkText(`timers[${index}].spin`, fields['spin'])
    checkText(`timers[${index}].addr`, fields['addr'])
    checkCount(`timers[${index}].remainingMs`, fields['remainingMs'])
  }
}

function checkCell(addr: string, value: unknown): void {
  const cell = recordAt(addr, value)
  const { kind } = cell
  if (kind === 'signal') {
    checkCount(`${addr}: changes`, cell['changes'])
    checkCount(`${addr}: stamp`, cell['stamp'])
  } else if (kind === 'deferred') checkResult(addr, cell['result'])
  else if (kind === 'mailbox') checkMailbox(addr, cell)
  else if (kind === 'spin') checkSpin(addr, cell)
  else fail(`${addr}: kind`, 'signal, deferred, mailbox or spin', kind)
}

function checkMailbox(addr: string, cell: Readonly<Record<string, unknown>>): void {
  checkCount(`${addr}: lastOrder`, cell['lastOrder'])
  for (const message of listAt(`${addr}: messages`, cell['messages'])) {
    checkCount(`${addr}: order of a message`, recordAt(`${addr}: message`, message)['order'])
  }
  for (const taker of listAt(`${addr}: takers`, cell['takers'])) checkText(`${addr}: taker`, taker)
}

function checkSpin(addr: string, cell: Readonly<Record<string, unknown>>): void {
  checkCount(`${addr}: stamp`, cell['stamp'])
  checkResult(addr, cell['result'])
  for (const [index, value] of listAt(`${addr}: log`, cell['log']).entries()) {
    const entry = recordAt(`${addr}: log[${index}]`, value)
    for (const name of ['kind', 'key', 'path']) checkText(`${addr}: log[${index}].${name}`, entry[name])
    checkCount(`${addr}: log[${index}].n`, entry['n'])
  }
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

function checkCount(path: string, value: unknown): void {
  if (typeof value !== 'number' || !(value >= 0)) fail(path, 'a number of 0 or more', value)
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

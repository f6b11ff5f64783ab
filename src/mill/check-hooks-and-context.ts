import { isOptionsObject } from '../codec/options-object.js'
import { show } from '../codec/show.js'
import type { Problem } from '../errors.js'
import { checkFields } from '../job/definition/check-fields.js'
import type { Check, Fields } from '../job/definition/check-fields.js'
import { checkName, isFunction } from '../job/definition/check-options.js'

/** The most stores of `capture`, and the most objects of `hooks`. */
const CAPTURES_MAX = 16
const HOOKS_MAX = 16

/** `capture`: false, or stores by name. */
export const isCapture: Check = (value) => {
  if (value === false) return undefined
  if (!isOptionsObject(value) || isStore(value))
    return `must be false or an object of AsyncLocalStorages by name, such as { tenant }, got ${show(value)}`
  const entries = Object.entries(value)
  if (entries.length > CAPTURES_MAX) return `must be at most ${CAPTURES_MAX} stores, got ${entries.length}`
  return entries.flatMap(([name, store]) => captureProblems(name, store))
}

function captureProblems(name: string, store: unknown): Problem[] {
  const wrongName = checkName(JSON.stringify(name), name)
  if (wrongName.length > 0) return wrongName
  if (store === undefined || isStore(store)) return []
  if (name === 'trace' && typeof store === 'boolean') return []
  const expected = `must be an AsyncLocalStorage, or an object with getStore() and run(value, call)`
  return [{ path: name, message: `${expected}${name === 'trace' ? ', or true or false' : ''}, got ${show(store)}` }]
}

function isStore(value: unknown): boolean {
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null) return false
  const { getStore, run } = value as { getStore?: unknown; run?: unknown }
  return typeof getStore === 'function' && typeof run === 'function'
}

const HOOKS: Fields = { fields: { enqueue: isFunction, start: isFunction, settle: isFunction } }

/** `hooks`: an object of them, or a list of such objects. */
export const isHooks: Check = (value) => {
  if (!Array.isArray(value)) return hookProblems(value, '')
  if (value.length > HOOKS_MAX) return `must be at most ${HOOKS_MAX} objects of hooks, got ${value.length}`
  return value.flatMap((one: unknown, index) => hookProblems(one, `[${index}]`))
}

/** A class instance has its hooks as methods and may have other fields; a plain object may have hooks only. */
function hookProblems(value: unknown, path: string): Problem[] {
  if (typeof value !== 'object' || value === null || Object.keys(HOOKS.fields).every((name) => !(name in value)))
    return checkFields(value, path, HOOKS)
  const prototype: unknown = Object.getPrototypeOf(value)
  if (prototype === Object.prototype || prototype === null) return checkFields(value, path, HOOKS)
  const hooks = value as Readonly<Record<string, unknown>>
  return checkFields(Object.fromEntries(Object.keys(HOOKS.fields).map((name) => [name, hooks[name]])), path, HOOKS)
}

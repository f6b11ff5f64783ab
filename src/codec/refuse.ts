import { className, show } from './show.js'

/** Why a value cannot be written, and what to do instead; it continues the sentence that the path begins. */
export function whyRefused(value: unknown): string {
  if (typeof value === 'function') return 'is a function, which cannot be written; pass the data it needs instead'
  if (typeof value === 'symbol') return 'is a symbol, which cannot be written; pass a string instead'
  if (typeof value !== 'object' || value === null) return `is ${show(value)}, which cannot be written`
  const name = className(value)
  if (name === 'Promise') return 'is a Promise; did you forget await?'
  if (hasMethod(value, 'then')) return `is a ${name} with a then method, as a promise has; did you forget await?`
  if (WEAK.has(name)) return `is a ${name}, whose content cannot be listed and so not written; pass a Map or an array`
  if (name === 'RegExp') return 'is a RegExp, which is off by default; switch it on with codec({ regExp: true })'
  if (name === 'ArrayBuffer' || name === 'SharedArrayBuffer' || ArrayBuffer.isView(value)) {
    return `is a ${name}; of binary data only Uint8Array is written, so pass one, or register the type with ${advice(name)}`
  }
  return whyNoClass(value, name)
}

/** The message of a codec that excludes a built-in type. */
export function whyExcluded(name: string): string {
  return `is of the type ${name}, which this codec leaves out (without: [${JSON.stringify(name)}])`
}

const WEAK = new Set(['WeakMap', 'WeakSet', 'WeakRef'])

function whyNoClass(value: object, name: string): string {
  const what =
    name === 'object' || name === 'Object'
      ? 'has a prototype of its own, so it'
      : `is an instance of the class ${name} and`
  const unused = hasMethod(value, 'toJSON')
    ? `; its toJSON is not used, because what it writes would not come back as ${name}`
    : ''
  return `${what} cannot be written as it is; pass plain data or register the class with ${advice(name)}${unused}`
}

function advice(name: string): string {
  const key = /^[A-Za-z]\w*$/u.test(name) ? name.charAt(0).toLowerCase() + name.slice(1) : 'name'
  return `codec({ types: { ${key}: { is, write, read } } })`
}

function hasMethod(value: object, name: string): boolean {
  return typeof (value as Readonly<Record<string, unknown>>)[name] === 'function'
}

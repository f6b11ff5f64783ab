/**
 * A path into a payload as people write it: `user.id`, `items[0].sku`, `"odd key".x`. Hand-written and linear: the text
 * may come from a search box.
 */

/** The longest path, in characters, and the most steps. */
export const PATH_MAX = 200
export const STEPS_MAX = 8

/** The steps of a path; a text when it is wrong. */
export function parseValuePath(path: string): readonly (string | number)[] | string {
  if (path.length === 0 || path.length > PATH_MAX) return `must have 1 to ${PATH_MAX} characters`
  const steps: (string | number)[] = []
  for (let at = 0; at < path.length;) {
    const step = readStep(path, at, steps.length === 0)
    if (typeof step === 'string') return step
    steps.push(step.value)
    at = step.end
  }
  return steps.length > STEPS_MAX ? `must have at most ${STEPS_MAX} steps` : steps
}

interface Step {
  readonly value: string | number
  readonly end: number
}

function readStep(path: string, from: number, isFirst: boolean): Step | string {
  if (path[from] === '[') return readIndex(path, from)
  if (!isFirst && path[from] !== '.') return `needs a dot before ${JSON.stringify(path.slice(from))}`
  const start = isFirst ? from : from + 1
  if (path[start] === '"') return readQuoted(path, start)
  let end = start
  while (end < path.length && path[end] !== '.' && path[end] !== '[') end += 1
  return end === start ? 'has a step without a name' : { value: path.slice(start, end), end }
}

function readIndex(path: string, from: number): Step | string {
  const close = path.indexOf(']', from)
  const digits = path.slice(from + 1, close)
  return close > from && /^\d{1,9}$/.test(digits)
    ? { value: Number(digits), end: close + 1 }
    : 'has an index that is no number: write [0]'
}

function readQuoted(path: string, from: number): Step | string {
  let value = ''
  for (let at = from + 1; at < path.length; at += 1) {
    if (path[at] === '"') return { value, end: at + 1 }
    if (path[at] === '\\') at += 1
    value += path[at] ?? ''
  }
  return 'has a quote that is not closed'
}

/** The value at a path; undefined when there is none. Own properties only. */
export function valueAt(value: unknown, steps: readonly (string | number)[]): unknown {
  let at: unknown = value
  for (const step of steps) {
    if (typeof at !== 'object' || at === null) return undefined
    if (at instanceof Map) at = at.get(step)
    else if (Object.hasOwn(at, step)) at = (at as Record<string | number, unknown>)[step]
    else return undefined
  }
  return at
}

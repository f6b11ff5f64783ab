import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS, UNIT_MS, WEEK_MS } from './duration-units.js'

/** A longer text is refused without parsing: no useful duration is longer, and input may be hostile. */
const TEXT_MAX = 64

/** The milliseconds of a duration text, or the end of an error message that follows "got …". */
export function durationOfText(text: string): number | string {
  if (text.length > TEXT_MAX) return `; it is longer than ${TEXT_MAX} characters`
  const found = read(text)
  if (typeof found === 'number') return found
  const meant = likelyMeant(text)
  return meant === undefined ? found : `${found}: did you mean ${JSON.stringify(meant)}?`
}

/** The end of an error message about a unit whose length varies. */
export function tooLong(unit: string): string {
  return `; ${unit} have no fixed length, so write weeks or days, or pass a Date`
}

const read = (text: string): number | string => (text.startsWith('P') ? readIso(text) : readUnits(text))

/** `(number unit)+`, each unit once. A sticky regular expression reads each character once. */
function readUnits(text: string): number | string {
  if (text.trim() === '') return '; it is empty'
  if (text.startsWith('-')) return '; a duration cannot be negative'
  if (/^\d+(?:\.\d+)?$/u.test(text))
    return `; text needs a unit: did you mean "${text}s", or the number ${text} (milliseconds)?`
  const part = /(?<count>\d+(?:\.\d+)?)(?<unit>[a-zA-Z]+)/uy
  const seen = new Set<string>()
  let sum = 0
  while (part.lastIndex < text.length) {
    const from = part.lastIndex
    const { count, unit } = part.exec(text)?.groups ?? {}
    if (count === undefined || unit === undefined)
      return `; at ${JSON.stringify(text.slice(from))} a number with a unit should follow`
    const ms = UNIT_MS.get(unit)
    if (ms === undefined) return unknownUnit(unit)
    if (seen.has(unit)) return `; "${unit}" comes twice`
    seen.add(unit)
    sum += Number(count) * ms
  }
  return sum
}

function unknownUnit(unit: string): string {
  const isVarying = unit === 'M' || /^(?:mo|months?|y|yrs?|years?)$/iu.test(unit)
  if (isVarying) return `${tooLong(/^m/iu.test(unit) ? 'months' : 'years')}${unit === 'M' ? '; minutes are "m"' : ''}`
  return `; "${unit}" is no unit, which are ms, s, m (minutes), h, d and w`
}

/** The designators of ISO 8601 in their order; only the last number may have a fraction. */
const ISO = /^P(?:(?<w>\d+)W)?(?:(?<d>\d+)D)?(?:T(?=\d)(?:(?<h>\d+)H)?(?:(?<m>\d+)M)?(?:(?<s>\d+)S)?)?$/u

function readIso(text: string): number | string {
  if (/^P[^T]*\dY/u.test(text)) return tooLong('years')
  if (/^P[^T]*\dM/u.test(text)) return tooLong('months')
  // The fraction is removed first, so that the pattern needs whole numbers only.
  const fraction = /[.,](?<digits>\d+)(?<unit>[WDHMS])$/u.exec(text)
  const whole = fraction === null ? text : text.slice(0, fraction.index) + (fraction.groups?.['unit'] ?? '')
  const found = ISO.exec(whole)
  if (found === null || whole === 'P') return '; it is no ISO 8601 duration, such as "PT5M" or "P1DT12H"'
  const { w, d, h, m, s } = found.groups ?? {}
  const parts = [
    [w, WEEK_MS],
    [d, DAY_MS],
    [h, HOUR_MS],
    [m, MINUTE_MS],
    [s, SECOND_MS],
  ] as const
  const used = parts.filter(([count]) => count !== undefined)
  const sum = used.reduce((total, [count, ms]) => total + Number(count) * ms, 0)
  return sum + Number(`0.${fraction?.groups?.['digits'] ?? '0'}`) * (used.at(-1)?.[1] ?? 0)
}

const WORDS: ReadonlyMap<string, string> = new Map(
  Object.entries({
    ms: 'ms|msec|msecs|millis|millisecond|milliseconds',
    s: 's|sec|secs|second|seconds',
    m: 'min|mins|minute|minutes',
    h: 'h|hr|hrs|hour|hours',
    d: 'd|day|days',
    w: 'w|wk|wks|week|weeks',
  }).flatMap(([unit, words]) => words.split('|').map((word) => [word, unit])),
)

/** The text in our notation, if that parses: without spaces, with units for words, with a point for a comma. */
function likelyMeant(text: string): string | undefined {
  const tidy = text
    .replaceAll(/\s|\band\b/gu, '')
    .replaceAll(/,(?=\d)/gu, '.')
    .replace(/^\./u, '0.')
  const isIso = /^p[\dt]/iu.test(tidy)
  const meant = isIso
    ? tidy.toUpperCase()
    : tidy.replaceAll(/[a-z]+/giu, (word) => WORDS.get(word.toLowerCase()) ?? word)
  return meant !== text && typeof read(meant) === 'number' ? meant : undefined
}

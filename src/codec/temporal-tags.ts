import { className, show } from './show.js'
import { type Tag, tagOf } from './tags.js'

/** The part of the Temporal namespace that is used: each class can create a value from text or fields. */
export type TemporalNamespace = {
  readonly [Name in TemporalName]: { from(written: never): TemporalValue }
}

interface TemporalValue {
  toString(): string
}

const TEMPORAL_NAMES = [
  'Instant',
  'PlainDate',
  'PlainTime',
  'PlainDateTime',
  'ZonedDateTime',
  'Duration',
  'PlainYearMonth',
  'PlainMonthDay',
] as const

type TemporalName = (typeof TEMPORAL_NAMES)[number]

export type TemporalTag = `Temporal.${TemporalName}`

export const temporalTagNames: readonly TemporalTag[] = TEMPORAL_NAMES.map((name) => `Temporal.${name}` as const)

/**
 * Temporal types as their text, which is exact to the nanosecond. The namespace is looked up at each use, so that a polyfill
 * may be installed after this module was loaded. The option has precedence over the global.
 */
export function temporalTags(given: TemporalNamespace | undefined): readonly Tag[] {
  return TEMPORAL_NAMES.map((name) =>
    tagOf<TemporalValue>(`Temporal.${name}`, {
      is: (value) => Object.prototype.toString.call(value) === `[object Temporal.${name}]`,
      write: (value) => {
        const made: unknown = classOf(name, given)
        if (typeof made !== 'function' || !(value instanceof made)) throw new TypeError(otherTemporal(value))
        return name === 'Duration' ? writeDuration(value) : value.toString()
      },
      read: (written) => {
        const isFields = name === 'Duration' && typeof written === 'object' && written !== null
        if (typeof written !== 'string' && !isFields) throw new TypeError(`expected text, got ${show(written)}`)
        return classOf(name, given).from(written as never)
      },
    }),
  )
}

function classOf(name: TemporalName, given: TemporalNamespace | undefined): TemporalNamespace[TemporalName] {
  const temporal = given ?? (globalThis as { Temporal?: TemporalNamespace }).Temporal
  if (temporal !== undefined) return temporal[name]
  throw new TypeError(
    'this runtime has no Temporal; use one that has it, or pass a polyfill: codec({ temporal: Temporal })',
  )
}

const otherTemporal = (value: TemporalValue): string =>
  `this ${className(value)} comes from another Temporal than this codec reads with; pass yours: codec({ temporal: Temporal })`

const FINE = ['milliseconds', 'microseconds', 'nanoseconds'] as const
const COARSE = ['years', 'months', 'weeks', 'days', 'hours', 'minutes', 'seconds'] as const

/** The text of a duration folds 1,500 milliseconds into 1.5 seconds; its fields do not, so they are kept when they differ. */
function writeDuration(duration: TemporalValue): unknown {
  const fields = duration as unknown as Readonly<Record<string, number | undefined>>
  if (FINE.every((field) => (fields[field] ?? 0) === 0)) return duration.toString()
  const used = [...COARSE, ...FINE].filter((field) => (fields[field] ?? 0) !== 0)
  return Object.fromEntries(used.map((field) => [field, fields[field]]))
}

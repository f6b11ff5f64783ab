/**
 * How the values of our own statements are parsed. An app may change `pg`'s parsers for the whole process (a bigint as
 * a BigInt, a boolean as a text), which must not affect the engine.
 *
 * Counts and times are whole numbers below 2^53, so they are parsed as numbers.
 */
export const OWN_TYPES = {
  getTypeParser: (oid: number): ((text: string) => unknown) => PARSERS.get(oid) ?? asText,
}

const asText = (text: string): unknown => text
const asJson = (text: string): unknown => JSON.parse(text)

const PARSERS = new Map<number, (text: string) => unknown>([
  [16, (text) => text === 't'], // boolean
  [20, Number], // bigint
  [21, Number], // smallint
  [23, Number], // integer
  [26, Number], // oid
  [700, Number], // real
  [701, Number], // double precision
  [114, asJson], // json
  [3802, asJson], // jsonb
])

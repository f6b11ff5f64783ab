/**
 * How the server's texts become values where statements of ours run. An app may change `pg`'s own ways for the whole process
 * (a bigint as a BigInt, a boolean as a text), and the engine must not notice.
 *
 * Counts and times of ours are whole numbers below 2^53: they come as numbers.
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

import { FINGERPRINT_AT } from '../../job/statistics/failure.js'

/** The fingerprint in the stored error of a job, in SQL: the expression of an index on both stores. */
export function fingerprintOfError(column: string): string {
  return `substr(${column}, ${FINGERPRINT_AT.first}, ${FINGERPRINT_AT.length})`
}

import type { ErrorRecord } from '../../codec/error-text.js'
import { digest } from '../../world/digest.js'

/** What a failed attempt adds to its error group: failures of the same job, error class and place are one group. */
export interface Failure {
  /** The digest of job, class and place: the same in every process and after every deploy that moves no code. */
  readonly fingerprint: string
  /** The class of the error. */
  readonly error: string
  /** Where it was thrown: function and file, without the line; empty when it has no stack. */
  readonly place: string
  /** The start of its message; null where it must not be readable. */
  readonly message: string | null
}

const FINGERPRINT_LENGTH = 16
const PLACE_MAX = 200
export const SAMPLE_MESSAGE_MAX = 300

export function failureOf(job: string, error: ErrorRecord): Failure {
  const name = error.type ?? error.name
  const place = placeOf(error.stack)
  return {
    fingerprint: fingerprintOf(job, name, place),
    error: name,
    place,
    message: error.message.slice(0, SAMPLE_MESSAGE_MAX),
  }
}

export function fingerprintOf(job: string, error: string, place: string): string {
  return digest(`${job}\n${error}\n${place}`).slice(0, FINGERPRINT_LENGTH)
}

/**
 * The error of a job as it is stored. Its error group comes first, so that an index of both stores finds the jobs of a
 * group by a fixed part of the text: FINGERPRINT_AT.
 */
export function writeJobError(error: ErrorRecord, fingerprint: string | undefined): string {
  return JSON.stringify(fingerprint === undefined ? error : { fingerprint, ...error })
}

/** Where the fingerprint is in the stored error of a job: the arguments of `substr()`. */
export const FINGERPRINT_AT = { first: '{"fingerprint":"'.length + 1, length: FINGERPRINT_LENGTH } as const

/** Whether a text can be a fingerprint. */
export function isFingerprint(text: string): boolean {
  return new RegExp(`^[0-9a-f]{${FINGERPRINT_LENGTH}}$`).test(text)
}

/** The first frame of the app's own code, else the first frame. */
function placeOf(stack: string | undefined): string {
  const frames = (stack ?? '').split('\n').filter((line) => /^\s*at /.test(line))
  const own = frames.find((line) => !/\bnode:|[\\/]node_modules[\\/]/.test(line)) ?? frames[0]
  return own === undefined ? '' : frameText(own).slice(0, PLACE_MAX)
}

/**
 * `charge (src/billing.ts)`. A line number would make another group of each deploy, so only a frame without a function
 * has one. Folders above the last belong to the machine.
 */
function frameText(frame: string): string {
  const [, called = '', file = '', line = ''] =
    /^\s*at (?:async )?(?:(.*?) \()?(.*?)(?::(\d+))?(?::\d+)?\)?$/.exec(frame) ?? []
  const shortFile = file
    .replace(/[?#].*$/, '')
    .split(/[\\/]/)
    .slice(-2)
    .join('/')
  return called === '' ? `${shortFile}:${line}` : `${called} (${shortFile})`
}

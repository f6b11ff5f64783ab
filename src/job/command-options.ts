import { show } from '../codec/show.js'
import { InvalidOptionsError } from '../errors.js'
import type { Problem } from '../errors.js'
import { checkFields } from './definition/check-fields.js'
import type { Fields } from './definition/check-fields.js'
import { isName } from './definition/check-values.js'
import { textProblem } from './definition/check-text.js'

/** The options of every command: who gives it, and why. */
export interface CommandOptions {
  /** Who gives the command. With an actor, the command writes a row of the audit trail in its own transaction. */
  readonly actor?: string | undefined
  /** The role of the actor, for the audit trail. */
  readonly role?: string | undefined
  /** Why. It is written to the audit trail, and by a cancel or a pause also to the job. At most 500 characters. */
  readonly reason?: string | undefined
}

/** Who gives a command, and why. The transaction of the command writes it into the audit trail. */
export interface AuditNote {
  readonly actor: string
  readonly role: string | null
  /** The verb that the caller called. */
  readonly verb: string
  readonly reason: string | null
  /** How long the row is kept. */
  readonly keepMs: number
}

/** Checked options of a command. */
export interface CommandGiven {
  /** Undefined without an actor. */
  readonly audit: AuditNote | undefined
  readonly reason: string | undefined
}

/** The longest reason, in characters. */
export const REASON_MAX = 500

const COMMAND_FIELDS: Fields['fields'] = {
  actor: isName,
  role: isName,
  reason: (value) => textProblem(value, REASON_MAX, 'text'),
}
const COMMITS_BY_ITSELF = 'the command commits by itself'
const NO_TX = { tx: COMMITS_BY_ITSELF, trx: COMMITS_BY_ITSELF, transaction: COMMITS_BY_ITSELF }

/** What a command takes. */
export interface CommandShape {
  /** It writes the reason to the job too. */
  readonly keepsReason?: boolean | undefined
  /** Fields beside those of every command. */
  readonly more?: Fields['fields'] | undefined
  /** It takes `tx`: it may join a transaction of the caller. */
  readonly takesTx?: boolean | undefined
}

/** Every problem of a command's options. A number is accepted: `ids.map(mill.cancel)` passes the index. */
export function commandProblems(given: unknown, { keepsReason, more, takesTx }: CommandShape = {}): Problem[] {
  if (given === undefined || typeof given === 'number') return []
  const problems = checkFields(given, 'options', {
    fields: { ...COMMAND_FIELDS, ...more },
    foreignNames: { ...(takesTx === true ? {} : NO_TX), by: 'use actor' },
    meant: (value) => (typeof value === 'string' ? `{ actor: ${show(value)} }` : undefined),
  })
  if (problems.length > 0) return problems
  const { actor, role, reason } = given as CommandOptions
  if (actor !== undefined) return []
  const lost = [
    ...(role === undefined ? [] : ['role']),
    ...(reason === undefined || keepsReason === true ? [] : ['reason']),
  ]
  return lost.map((name) => ({
    path: `options.${name}`,
    message: 'is kept in the audit trail, which needs an actor: give both',
  }))
}

/** Checks the options of a command, or throws all their problems. `keepMs`: how long its row of the audit trail is kept. */
export function commandGiven(
  verb: string,
  subject: string,
  given: unknown,
  keepMs: number,
  shape?: CommandShape,
): CommandGiven {
  const problems = commandProblems(given, shape)
  if (problems.length > 0) throw new InvalidOptionsError(subject, problems)
  return toGiven(verb, given, keepMs)
}

/** Options that were checked. */
export function toGiven(verb: string, given: unknown, keepMs: number): CommandGiven {
  const { actor, role, reason } = (typeof given === 'object' ? given : {}) as CommandOptions
  if (actor === undefined) return { audit: undefined, reason }
  return { audit: { actor, role: role ?? null, verb, reason: reason ?? null, keepMs }, reason }
}

import { describeError, reviveError } from '../codec/error-text.js'
import { Redactor } from '../job/secrets/redact.js'
import type { RedactRule } from '../job/secrets/redact.js'
import type { Log } from '../world/log.js'

/** The same log, whose lines do not show what the rules hide; without rules, the log itself. */
export function redactedLog(log: Log, rules: readonly RedactRule[]): Log {
  if (rules.length === 0) return log
  const redactor = new Redactor(rules)
  return {
    get debugs() {
      return log.debugs
    },
    write: (level, fields, message) => log.write(level, fieldsOf(redactor, fields), redactor.text(message)),
  }
}

function fieldsOf(redactor: Redactor, fields: object): object {
  const errors = Object.entries(fields).map(
    ([name, value]) => [name, value instanceof Error ? undefined : value] as const,
  )
  const shown = redactor.value(Object.fromEntries(errors), 'log') as Record<string, unknown>
  for (const [name, value] of Object.entries(fields))
    if (value instanceof Error && shown[name] === undefined)
      shown[name] = reviveError(redactor.error(describeError(value), name))
  return shown
}

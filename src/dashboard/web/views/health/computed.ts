import type { FindingRow, HealthFields } from '../../../protocol.js'
import type { MarkName } from '../../parts/state.js'
import { visible } from '../../format/text.js'
import { dayAndTime } from '../../format/time.js'
import type { Zone } from '../../format/time.js'

/** A fault with its effect and what mends it. */
export interface FindingLine {
  readonly key: string
  readonly mark: MarkName
  readonly text: string
  readonly since: string
  readonly effect: string
  readonly mend: string
  readonly link: string | null
}

export function findingLine(row: FindingRow, now: number, zone: Zone): FindingLine {
  return {
    key: `${row.kind} ${row.text}`,
    mark: row.level === 'bad' ? 'failed' : 'warn',
    text: visible(row.text),
    since: row.since === null ? '' : `since ${dayAndTime(row.since, now, zone)}`,
    effect: visible(row.effect),
    mend: visible(row.mend),
    link: row.link,
  }
}

/** The report as plain text, for a ticket. */
export function reportText(fields: HealthFields, findings: readonly FindingLine[]): string {
  const faults = findings.map(
    ({ text, since, effect, mend }) => `! ${text} ${since}\n  effect: ${effect}\n  fix: ${mend}`,
  )
  const good = fields.good.map(({ name, text }) => `ok ${name}: ${text}`)
  return [`Millrace on ${fields.store.engine}`, ...faults, ...good].join('\n')
}

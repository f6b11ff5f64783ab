import type { AuditRecord } from '../../../client/read/audit.js'
import { AUDIT_QUALIFIERS, checkSearch, instantOf, parseSearch } from '../../search.js'
import type { SearchProblem, Term } from '../../search.js'
import type { AuditFields, AuditRow } from '../../protocol/rows.js'
import type { MakeView, Parts } from '../parts.js'
import type { Show } from '../show/redact.js'
import { asPage, link } from './reads.js'

const PAGE = 50

/** The audit trail, newest first. */
export async function readAudit(parts: Parts, query: string, cursor?: string): Promise<MakeView> {
  const parsed = parseSearch(query)
  const problem = parsed.ok ? problemOf(parsed.terms) : parsed.problem
  if (problem !== undefined) {
    const { text, hint, from, to } = problem
    return () => ({
      fields: {
        query,
        keptMs: null,
        problem: { text: hint === null ? text : `${text} ${hint}`, from, to },
      } satisfies AuditFields,
      rows: [],
    })
  }
  const terms = parsed.ok ? parsed.terms : []
  const one = (name: string): string | undefined => terms.find((term) => term.name === name)?.values[0]?.text
  const since = one('since')
  const sinceMs = since === undefined ? undefined : instantOf(since, { now: parts.world.clock.now() })
  const page = await asPage(() =>
    parts.mill.audit({
      actor: one('actor'),
      verb: one('verb'),
      target: one('target'),
      since: sinceMs === undefined ? undefined : new Date(sinceMs),
      limit: PAGE,
      cursor,
    }),
  )
  return (show) => ({
    fields: { query, keptMs: null, problem: null } satisfies AuditFields,
    rows: page.rows.map((row, i) => [`${row.at.getTime()}-${page.rows.length - i}-${row.target}`, auditRow(row, show)]),
    cursor: page.cursor ?? null,
  })
}

function problemOf(terms: readonly Term[]): SearchProblem | undefined {
  const wrong = checkSearch(terms, AUDIT_QUALIFIERS)
  if (wrong !== undefined) return wrong
  const word = terms.find(({ name, negated, values }) => name === undefined || negated || values.length > 1)
  if (word === undefined) return undefined
  return {
    text: 'The audit trail is filtered by one actor, verb, target and time.',
    hint: 'Such as actor:ada verb:retry since:1h.',
    from: word.from,
    to: word.to,
  }
}

function auditRow({ at, role, before, after, reason, target, ...rest }: AuditRecord, show: Show): AuditRow {
  return {
    ...rest,
    target,
    at: at.getTime(),
    role: role ?? null,
    link: targetLink(target),
    before: before ?? null,
    after: after ?? null,
    reason: show.text(reason),
  }
}

const PAGES: Readonly<Record<string, string>> = {
  job: 'job',
  queue: 'queues',
  group: 'groups',
  schedule: 'recurring',
  sequence: 'sequences',
}

/** 'job 0198…' leads to that job. */
function targetLink(target: string): string | null {
  const at = target.indexOf(' ')
  const kind = target.slice(0, at)
  return at > 0 && Object.hasOwn(PAGES, kind) ? link(PAGES[kind] as string, target.slice(at + 1)) : null
}

import type { EnqueueRow, QueueRow } from '../../protocol.js'
import { jobHref, jobsHref, printRoute, term } from '../route.js'
import { words } from '../texts.js'

export interface JumpChoice {
  readonly label: string
  readonly kind: string
  readonly href: string
}

const SHOWN_MAX = 12
const ID = /^[0-9a-f]{8}-[0-9a-f-]{27}$/i

/** Where a text may lead: an id to its job, else pages, queues and jobs whose names have it. */
export function jumpChoices(text: string, queues: readonly QueueRow[], jobs: readonly EnqueueRow[]): JumpChoice[] {
  const wanted = text.trim().toLowerCase()
  if (ID.test(wanted)) return [{ label: wanted, kind: 'job', href: jobHref(wanted) }]
  const pages = Object.entries(words.pages).filter(([page]) => page !== 'more')
  const all: JumpChoice[] = [
    ...pages.map(([page, label]) => ({ label, kind: 'page', href: page === 'overview' ? '#/' : `#/${page}` })),
    ...queues.map(({ name }) => ({ label: name, kind: 'queue', href: printRoute({ page: 'queues', id: name }) })),
    ...jobs.map(({ name }) => ({ label: name, kind: 'jobs', href: jobsHref(term('job', name)) })),
  ]
  const found = all.filter(({ label }) => label.toLowerCase().includes(wanted))
  const search = wanted === '' ? [] : [{ label: text.trim(), kind: 'search', href: jobsHref(text.trim()) }]
  return [...found.slice(0, SHOWN_MAX - 1), ...search]
}

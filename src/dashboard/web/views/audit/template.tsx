import { useState } from 'preact/hooks'
import type { AuditFields, AuditRow, Snapshot } from '../../../protocol.js'
import { useApp } from '../../app-context.js'
import { Empty } from '../../parts/empty.js'
import { Page } from '../../parts/page.js'
import { Table } from '../../parts/table.js'
import type { Column } from '../../parts/table.js'
import { When } from '../../parts/time.js'
import { rowsOf, useTopic } from '../../use-topic.js'
import { whole } from '../../format/number.js'
import { topics } from './query.js'

/** Who did what, newest first. The dashboard cannot change it. */
export function AuditPage() {
  const { router } = useApp()
  const held = useTopic<'audit'>(topics(router.route.value)[0] as string)
  const { snapshot } = held
  return (
    <Page title="Audit" held={held} lead="Who did what, newest first." tools={<Filter />}>
      {snapshot && <Rows view={snapshot} />}
    </Page>
  )
}

function Filter() {
  const { router } = useApp()
  const { q = '' } = router.route.value.query
  return (
    <input
      class="field wide"
      type="search"
      aria-label="Filter"
      placeholder="actor: verb: target: since:"
      value={q}
      onChange={({ currentTarget }) => router.set({ q: currentTarget.value || undefined })}
    />
  )
}

function Rows({ view }: { view: Snapshot<AuditFields, AuditRow> }) {
  const { api } = useApp()
  const [older, setOlder] = useState<Snapshot<AuditFields, AuditRow> | undefined>(undefined)
  const rows = [...rowsOf(view), ...(older === undefined ? [] : rowsOf(older))]
  const cursor = older === undefined ? view.cursor : older.cursor
  const load = async (): Promise<void> => {
    const page = await api.post<Snapshot<AuditFields, AuditRow>>('view', { topic: view.topic, cursor })
    setOlder(
      older === undefined
        ? page
        : { ...page, rows: { ...older.rows, ...page.rows }, order: [...older.order, ...page.order] },
    )
  }
  if (rows.length === 0)
    return (
      <div class="card">
        <Empty>
          {view.fields.problem?.text ??
            'No action was recorded. Actions with an actor are kept here, those of this dashboard always.'}
        </Empty>
      </div>
    )
  const foot = cursor === null ? <span>These are all.</span> : <Older onClick={() => void load()} />
  return (
    <Table
      caption="Audit trail"
      columns={COLUMNS}
      rows={rows}
      rowKey={({ at, verb, target }) => `${at} ${verb} ${target}`}
      foot={foot}
    />
  )
}

function Older({ onClick }: { onClick: () => void }) {
  return (
    <button type="button" class="button" onClick={onClick}>
      Older
    </button>
  )
}

const COLUMNS: readonly Column<AuditRow>[] = [
  { key: 'at', head: 'At', width: '170px', phone: 'side', cell: ({ at }) => <When at={at} /> },
  {
    key: 'actor',
    head: 'Actor',
    width: '150px',
    phone: 'title',
    title: ({ actor }) => actor,
    cell: ({ actor }) => <b class="strong">{actor}</b>,
  },
  { key: 'role', head: 'Role', width: '88px', hide: 4, cell: ({ role }) => role ?? '–' },
  { key: 'verb', head: 'Verb', width: '150px', phone: 'end', cell: ({ verb }) => verb },
  {
    key: 'target',
    head: 'Target',
    phone: 'sub',
    title: ({ target }) => target,
    cell: ({ target, link }) => (link === null ? target : <a href={link}>{target}</a>),
  },
  { key: 'count', head: 'Jobs', width: '76px', isNumber: true, hide: 3, cell: ({ count }) => whole(count) },
  {
    key: 'change',
    head: 'Change',
    width: '180px',
    hide: 2,
    cell: ({ before, after }) => (before === null || after === null ? '' : `${before} → ${after}`),
  },
  {
    key: 'reason',
    head: 'Reason',
    width: '18%',
    hide: 1,
    title: ({ reason }) => reason ?? '',
    cell: ({ reason }) => <span class="sub">{reason}</span>,
  },
]

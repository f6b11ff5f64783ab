import type { FailureRow } from '../../../protocol.js'
import { BulkButton } from '../../parts/act/bulk.js'
import { Count } from '../../parts/count.js'
import { Spark } from '../../parts/spark.js'
import { Glyph } from '../../parts/state.js'
import { Table } from '../../parts/table.js'
import type { Column } from '../../parts/table.js'
import { Ago, When } from '../../parts/time.js'
import { failureLine } from './computed.js'
import type { FailureLine } from './computed.js'

/** Error groups by row; the short form is a part of another page. */
export function FailureTable({ rows, isShort }: { rows: readonly FailureRow[]; isShort?: boolean }) {
  const columns = isShort ? COLUMNS.filter(({ key }) => !LONG.includes(key)) : COLUMNS
  return (
    <Table
      caption="Failures by cause"
      columns={columns}
      rows={rows.map(failureLine)}
      rowKey={({ fingerprint }) => fingerprint}
    />
  )
}

const LONG = ['place', 'first']

const COLUMNS: readonly Column<FailureLine>[] = [
  {
    key: 'error',
    head: 'Error',
    phone: 'title',
    title: ({ error, message }) => `${error}: ${message}`,
    cell: ({ error, message, href, isNew }) => (
      <span class="error-cell">
        <Glyph name="failed" />
        <a class="row-link" href={href}>
          {error}
        </a>
        <span class="sub cut">{message}</span>
        {isNew ? <span class="badge">new</span> : null}
      </span>
    ),
  },
  { key: 'job', head: 'Job', width: '120px', hide: 5, phone: 'sub', title: ({ job }) => job, cell: ({ job }) => job },
  {
    key: 'place',
    head: 'Where',
    width: '190px',
    hide: 2,
    title: ({ place }) => place,
    cell: ({ place }) => <span class="mono">{place}</span>,
  },
  {
    key: 'count',
    head: 'Attempts',
    width: '76px',
    isNumber: true,
    phone: 'side',
    cell: ({ count, countHref }) => <Count value={count} href={countHref} ink="failed" />,
  },
  {
    key: 'spark',
    head: 'In the range',
    width: '120px',
    hide: 3,
    cell: ({ spark, error }) => (spark === null ? null : <Spark values={spark} kind="failed" name={error} />),
  },
  { key: 'first', head: 'First', width: '116px', hide: 2, cell: ({ first }) => <When at={first} short /> },
  { key: 'last', head: 'Last', width: '84px', isNumber: true, hide: 4, cell: ({ last }) => <Ago at={last} /> },
  {
    key: 'actions',
    head: '',
    width: '112px',
    phone: 'end',
    cell: ({ fingerprint, retryLabel, error }) => (
      <span class="row-actions">
        {retryLabel === undefined ? null : (
          <BulkButton
            verb="bulk.retry"
            of={{ fingerprint }}
            label={retryLabel}
            name={`${retryLabel}: ${error}`}
            shortcut="retry"
          />
        )}
      </span>
    ),
  },
]

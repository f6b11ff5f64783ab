import type { QueueRow } from '../../../protocol.js'
import { useApp } from '../../app-context.js'
import { Act } from '../../parts/act/act-button.js'
import { Bar } from '../../parts/bar.js'
import { Count } from '../../parts/count.js'
import { Spark } from '../../parts/spark.js'
import { Mark } from '../../parts/state.js'
import { Table } from '../../parts/table.js'
import type { Column } from '../../parts/table.js'
import { queueLine } from './computed.js'
import type { QueueLine } from './computed.js'

/** Queues by row; the pause button is always there, since stopping is urgent. */
export function QueueTable({ rows }: { rows: readonly QueueRow[] }) {
  const { clock, zone } = useApp()
  const lines = rows.map((row) => queueLine(row, clock.now.value, zone.value))
  return <Table caption="Queues" columns={COLUMNS} rows={lines} rowKey={({ name }) => name} />
}

const COLUMNS: readonly Column<QueueLine>[] = [
  {
    key: 'name',
    head: 'Queue',
    phone: 'title',
    title: ({ name }) => name,
    cell: ({ name, href }) => (
      <a class="row-link" href={href}>
        {name}
      </a>
    ),
  },
  {
    key: 'state',
    head: 'State',
    width: '200px',
    phone: 'lead',
    title: ({ word, why }) => `${word} ${why}`,
    cell: ({ mark, word }) => <Mark name={mark} word={word} />,
  },
  {
    key: 'waiting',
    head: 'Waiting',
    width: '76px',
    isNumber: true,
    phone: 'side',
    cell: ({ waiting, waitingHref }) => <Count value={waiting} href={waitingHref} />,
  },
  { key: 'oldest', head: 'Oldest', width: '92px', isNumber: true, hide: 4, cell: ({ oldest }) => oldest },
  {
    key: 'running',
    head: 'Running',
    width: '132px',
    isNumber: true,
    hide: 5,
    cell: ({ name, running, slots, runningText, runningHref }) => (
      <span class="meter-line">
        {slots === null ? null : (
          <Bar
            segments={[{ kind: 'running', value: running }]}
            total={slots}
            label={`${name}: ${runningText} slots busy`}
          />
        )}
        <a href={runningHref}>{runningText}</a>
      </span>
    ),
  },
  { key: 'rate', head: 'Done/min', width: '76px', isNumber: true, hide: 3, cell: ({ perMinute }) => perMinute },
  {
    key: 'spark',
    head: 'Last hour',
    width: '120px',
    hide: 2,
    cell: ({ name, spark }) => <Spark values={spark} kind="done" name={`${name}, done per minute`} />,
  },
  {
    key: 'failed',
    head: 'Failed',
    width: '68px',
    isNumber: true,
    hide: 5,
    cell: ({ failed, failedHref }) => <Count value={failed} href={failedHref} ink="failed" />,
  },
  { key: 'retried', head: 'Retried', width: '68px', isNumber: true, hide: 0, cell: ({ retried }) => retried },
  { key: 'wait', head: 'Wait p95', width: '84px', isNumber: true, hide: 0, cell: ({ waitP95 }) => waitP95 },
  {
    key: 'empty',
    head: 'Empty in',
    width: '160px',
    isNumber: true,
    hide: 5,
    phone: 'sub',
    title: ({ emptyIn }) => emptyIn,
    cell: ({ emptyIn }) => emptyIn,
  },
  {
    key: 'actions',
    head: '',
    width: '58px',
    phone: 'end',
    cell: ({ name, isPaused }) => (
      <span class="row-actions">
        <Act
          wish={{ verb: isPaused ? 'queue.resume' : 'queue.pause', target: name, expect: isPaused ? 'paused' : 'open' }}
          label={isPaused ? `Resume ${name}` : `Pause ${name}`}
          icon={isPaused ? 'play' : 'pause'}
          shortcut="pause"
        />
      </span>
    ),
  },
]

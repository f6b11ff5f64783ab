import { useState } from 'preact/hooks'
import type { WorkerRow } from '../../../protocol.js'
import { useApp } from '../../app-context.js'
import { Bar } from '../../parts/bar.js'
import { Mark } from '../../parts/state.js'
import { Table } from '../../parts/table.js'
import type { Column } from '../../parts/table.js'
import { Since } from '../../parts/time.js'
import { workerLine } from './computed.js'
import type { WorkerLine } from './computed.js'

/** Workers by row; a click opens what each slot runs and the names it knows. */
export function WorkerTable({ rows }: { rows: readonly WorkerRow[] }) {
  const { clock } = useApp()
  const [open, setOpen] = useState<string | undefined>(undefined)
  const lines = rows.map((row) => workerLine(row, clock.now.value))
  const opener: Column<WorkerLine> = {
    key: 'id',
    head: 'Worker',
    width: '104px',
    phone: 'title',
    cell: ({ id }) => (
      <button
        type="button"
        class="link-button mono"
        aria-expanded={open === id}
        onClick={() => setOpen(open === id ? undefined : id)}
      >
        {id}
      </button>
    ),
  }
  return (
    <Table
      caption="Workers"
      columns={[opener, ...COLUMNS]}
      rows={lines}
      rowKey={({ id }) => id}
      rowClass={({ id, isDead }) => (isDead ? 'left' : open === id ? 'opened' : '')}
      detail={(line) => (line.id === open ? <Detail line={line} /> : null)}
    />
  )
}

const COLUMNS: readonly Column<WorkerLine>[] = [
  {
    key: 'state',
    head: 'State',
    width: '88px',
    phone: 'lead',
    cell: ({ mark, word }) => <Mark name={mark} word={word} />,
  },
  {
    key: 'place',
    head: 'Host · pid',
    width: '132px',
    hide: 4,
    title: ({ place }) => place,
    cell: ({ place }) => place,
  },
  {
    key: 'version',
    head: 'Version',
    width: '84px',
    hide: 2,
    title: ({ version }) => version,
    cell: ({ version }) => version,
  },
  { key: 'up', head: 'Up', width: '84px', isNumber: true, hide: 3, cell: ({ up }) => up },
  {
    key: 'slots',
    head: 'Slots',
    width: '148px',
    isNumber: true,
    phone: 'side',
    cell: ({ id, busy, slots, slotsText }) => (
      <span class="meter-line">
        {slots === null ? null : (
          <Bar segments={[{ kind: 'running', value: busy }]} total={slots} label={`${id}: ${slotsText} slots busy`} />
        )}
        <span>{slotsText}</span>
      </span>
    ),
  },
  {
    key: 'running',
    head: 'Now running',
    hide: 5,
    phone: 'sub',
    title: ({ running }) => running,
    cell: ({ running }) => <span class="sub">{running}</span>,
  },
  { key: 'rate', head: 'Done/min', width: '80px', isNumber: true, hide: 3, cell: ({ perMinute }) => perMinute },
  { key: 'loop', head: 'Loop p99', width: '84px', isNumber: true, hide: 0, cell: ({ loop }) => loop },
  { key: 'memory', head: 'Memory', width: '84px', isNumber: true, hide: 1, cell: ({ memory }) => memory },
  { key: 'beat', head: 'Beat', width: '88px', isNumber: true, hide: 4, phone: 'end', cell: ({ beat }) => beat },
]

function Detail({ line }: { line: WorkerLine }) {
  return (
    <>
      <ul class="log">
        {line.runningNow.map(({ key, job, count, since }) => (
          <li key={key}>
            <b class="strong">{job}</b> {count === 1 ? '' : `×${count}`} for <Since at={since} />
          </li>
        ))}
      </ul>
      {line.names === '' ? null : <p class="break">Knows {line.names}.</p>}
    </>
  )
}

import { useState } from 'preact/hooks'
import { UPCOMING_SPANS } from '../../../protocol.js'
import type { UpcomingFields, UpcomingRow, Snapshot } from '../../../protocol.js'
import { useApp } from '../../app-context.js'
import { Act } from '../../parts/act/act-button.js'
import { Empty } from '../../parts/empty.js'
import { JobMenu, LikelyAct } from '../../parts/act/job-acts.js'
import { Page } from '../../parts/page.js'
import { Segments } from '../../parts/segments.js'
import { Table } from '../../parts/table.js'
import type { Column } from '../../parts/table.js'
import { printRoute } from '../../route.js'
import { rowsOf, useTopic } from '../../use-topic.js'
import { PAGE_ROWS, axisTicks, laneLines, leadText, leftText, upcomingLine } from './computed.js'
import type { UpcomingLine } from './computed.js'
import { upcomingSpan } from './query.js'

/** What will run tonight, ticks without a job included. */
export function UpcomingPage() {
  const { router } = useApp()
  const span = upcomingSpan(router.route.value)
  const held = useTopic<'upcoming'>(`upcoming:${span}`)
  const { snapshot } = held
  const options = UPCOMING_SPANS.map((name) => ({
    name,
    href: printRoute({ page: 'upcoming', query: { span: name } }),
  }))
  return (
    <Page
      title="Upcoming"
      held={held}
      lead={snapshot && leadText(snapshot.fields)}
      tools={<Segments label="How far ahead" options={options} current={span} />}
    >
      {snapshot && <Body view={snapshot} />}
    </Page>
  )
}

function Body({ view }: { view: Snapshot<UpcomingFields, UpcomingRow> }) {
  const { clock, zone } = useApp()
  const [shown, setShown] = useState(PAGE_ROWS)
  const rows = rowsOf(view)
  const lines = rows.slice(0, shown).map((row) => upcomingLine(row, clock.now.value, zone.value))
  if (lines.length === 0)
    return (
      <div class="card">
        <Empty>No job is scheduled and no recurring job fires in this time.</Empty>
      </div>
    )
  return (
    <>
      <Lanes fields={view.fields} />
      <Table
        caption="Upcoming runs"
        columns={columnsOf(rows)}
        rows={lines}
        rowKey={({ key }) => key}
        foot={<More left={leftText(rows.length, shown)} onMore={() => setShown(shown + PAGE_ROWS)} />}
      />
    </>
  )
}

function More({ left, onMore }: { left: string; onMore: () => void }) {
  if (left === '') return <span>These are all.</span>
  return (
    <button type="button" class="button" onClick={onMore}>
      {left}
    </button>
  )
}

function Lanes({ fields }: { fields: UpcomingFields }) {
  const { zone } = useApp()
  return (
    <div class="card upcoming" role="group" aria-label="Runs by queue over time; the list below has the same">
      <div class="upcoming-axis" aria-hidden="true">
        {axisTicks(fields, zone.value).map(({ x, text }) => (
          <span key={x} style={{ left: `${x}%` }}>
            {text}
          </span>
        ))}
      </div>
      {laneLines(fields, zone.value).map(({ queue, total, bars }) => (
        <div key={queue} class="upcoming-lane">
          <a class="cut" href={printRoute({ page: 'queues', id: queue })} title={queue}>
            {queue}
          </a>
          <span class="num quiet">{total}</span>
          <span class="upcoming-bars">
            {bars.map(({ key, height, title }) => (
              <i key={key} title={title} style={{ height: `${height}%` }} />
            ))}
          </span>
        </div>
      ))}
    </div>
  )
}

/** The usual run time has a column only where one is known. */
function columnsOf(rows: readonly UpcomingRow[]): readonly Column<UpcomingLine>[] {
  return rows.every(({ usuallyTakesMs }) => usuallyTakesMs === null)
    ? COLUMNS.filter(({ key }) => key !== 'takes')
    : COLUMNS
}

const COLUMNS: readonly Column<UpcomingLine>[] = [
  { key: 'at', head: 'At', width: '140px', phone: 'side', cell: ({ at }) => at },
  { key: 'in', head: 'In', width: '104px', isNumber: true, hide: 5, cell: ({ inText }) => inText },
  {
    key: 'name',
    head: 'What',
    phone: 'title',
    title: ({ name }) => name,
    cell: ({ name, href }) =>
      href === undefined ? (
        name
      ) : (
        <a class="row-link" href={href}>
          <bdi dir="auto">{name}</bdi>
        </a>
      ),
  },
  {
    key: 'queue',
    head: 'Queue',
    width: '128px',
    hide: 4,
    phone: 'sub',
    title: ({ queue }) => queue,
    cell: ({ queue }) => queue,
  },
  { key: 'from', head: 'From', width: '96px', hide: 3, cell: ({ from }) => from },
  { key: 'takes', head: 'Usually takes', width: '112px', isNumber: true, hide: 2, cell: ({ takes }) => takes },
  {
    key: 'actions',
    head: '',
    width: '84px',
    phone: 'end',
    cell: ({ id, state, name, schedule }) => (
      <span class="row-actions">
        {id !== null && state !== null ? (
          <>
            <LikelyAct id={id} state={state} name={name} />
            <JobMenu id={id} state={state} name={name} />
          </>
        ) : schedule === null ? null : (
          <Act
            wish={{ verb: 'recurring.runNow', target: schedule }}
            label={`Run ${name} now`}
            icon="play"
            shortcut="retry"
          />
        )}
      </span>
    ),
  },
]

import type { RecurringFields, RecurringRow, Snapshot, Tick } from '../../../protocol.js'
import { useApp } from '../../app-context.js'
import { Act } from '../../parts/act/act-button.js'
import { Empty } from '../../parts/empty.js'
import { Page } from '../../parts/page.js'
import { Glyph } from '../../parts/state.js'
import { Table } from '../../parts/table.js'
import type { Column } from '../../parts/table.js'
import { When } from '../../parts/time.js'
import { rowsOf, useTopic } from '../../use-topic.js'
import { Backfill } from './backfill.js'
import { ledgerLine, recurringLine } from './computed.js'
import type { LedgerLine, RecurringLine, TickCell } from './computed.js'
import { plural } from '../../format/number.js'

/** Did the nightly run happen, and if not, why? */
export function RecurringPage() {
  const { router } = useApp()
  const { id } = router.route.value
  const held = useTopic<'recurring'>('recurring')
  const { snapshot } = held
  const lead = snapshot && `${plural(snapshot.fields.total, 'recurring job')}. Rules are defined in code.`
  return (
    <Page title="Recurring" held={held} lead={lead}>
      {id === undefined ? null : <NoSuch key={id} id={id} />}
      {snapshot && <All rows={rowsOf(snapshot)} />}
      {id === undefined ? null : <Ledger key={id} id={id} />}
    </Page>
  )
}

function All({ rows }: { rows: readonly RecurringRow[] }) {
  const { clock, zone, router } = useApp()
  const { id } = router.route.value
  if (rows.length === 0)
    return (
      <div class="card">
        <Empty code="mill.recurring('daily-digest', digest, {}, '0 9 * * *')">There are no recurring jobs.</Empty>
      </div>
    )
  const lines = rows.map((row) => recurringLine(row, clock.now.value, zone.value))
  return (
    <Table
      caption="Recurring jobs"
      columns={COLUMNS}
      rows={lines}
      rowKey={(line) => line.id}
      rowClass={(line) => (line.id === id ? 'opened' : '')}
      detail={({ warning }) => (warning === '' ? null : <span class="ink-retrying">▲ {warning}</span>)}
    />
  )
}

function Cells({ cells }: { cells: readonly TickCell[] }) {
  return (
    <span class="cells">
      {cells.map(({ key, sign, ink, href, title }) =>
        href === undefined ? (
          <span key={key} class={`ink-${ink}`} title={title}>
            {sign}
          </span>
        ) : (
          <a key={key} class={`ink-${ink}`} title={title} href={href} aria-label={title}>
            {sign}
          </a>
        ),
      )}
    </span>
  )
}

const COLUMNS: readonly Column<RecurringLine>[] = [
  {
    key: 'id',
    head: 'Id',
    phone: 'title',
    title: ({ id }) => id,
    cell: ({ id, href }) => (
      <a class="row-link" href={href}>
        {id}
      </a>
    ),
  },
  {
    key: 'words',
    head: 'When',
    phone: 'sub',
    title: ({ words, rule, zoneNote }) => `${words} (${rule}) ${zoneNote}`,
    cell: ({ words, zoneNote }) => (
      <>
        {words} <span class="sub">{zoneNote}</span>
      </>
    ),
  },
  {
    key: 'next',
    head: 'Next',
    width: '200px',
    phone: 'side',
    cell: ({ next, nextIn }) => (
      <>
        {next} <span class="sub">{nextIn}</span>
      </>
    ),
  },
  {
    key: 'ticks',
    head: 'Last ticks',
    width: '36%',
    isNumber: true,
    hide: 4,
    cell: ({ cells }) => <Cells cells={cells} />,
  },
  {
    key: 'policy',
    head: 'Missed · overlap',
    width: '124px',
    hide: 2,
    title: ({ policy }) => policy,
    cell: ({ policy }) => policy,
  },
  {
    key: 'actions',
    head: '',
    width: '84px',
    phone: 'end',
    cell: ({ id, isPaused }) => (
      <span class="row-actions">
        <Act wish={{ verb: 'recurring.runNow', target: id }} label={`Run ${id} now`} icon="play" shortcut="retry" />
        <Act
          wish={{
            verb: isPaused ? 'recurring.resume' : 'recurring.pause',
            target: id,
            expect: isPaused ? 'paused' : 'running',
          }}
          label={isPaused ? `Resume ${id}` : `Pause ${id}`}
          icon={isPaused ? 'retry' : 'pause'}
          shortcut="pause"
        />
      </span>
    ),
  },
]

/** Above the list: what was asked for is not in it. */
function NoSuch({ id }: { id: string }) {
  const { gone } = useTopic<'recurring:'>(`recurring:${id}`)
  return gone === undefined ? null : (
    <div class="strip warn" role="status">
      <Glyph name="warn" />
      <span class="break">{gone}</span>
    </div>
  )
}

function Ledger({ id }: { id: string }) {
  const held = useTopic<'recurring:'>(`recurring:${id}`)
  const { snapshot } = held
  return snapshot === undefined || held.gone !== undefined ? null : <LedgerOf view={snapshot} />
}

function LedgerOf({ view }: { view: Snapshot<RecurringFields, Tick> }) {
  const { clock, zone } = useApp()
  const { schedule, next, clockNote } = view.fields
  const lines = rowsOf(view).map((tick) => ledgerLine(tick, clock.now.value, zone.value))
  return (
    <section class="card" id="ledger">
      <div class="card-head">
        <h2>{schedule.id}</h2>
        <code class="quiet">{schedule.rule}</code>
        <span class="quiet">
          next{' '}
          {next.map((at, i) => (
            <span key={at}>
              {i === 0 ? '' : ' · '}
              <When at={at} short />
            </span>
          ))}
        </span>
        <span class="end buttons">
          <Backfill id={schedule.id} />
          <Act
            wish={{ verb: 'recurring.delete', target: schedule.id }}
            label="Delete"
            subject={schedule.id}
            question={`${schedule.id} will not fire again until a program that defines it starts again. Jobs that it has made stay.`}
          />
        </span>
      </div>
      {clockNote === null ? null : <p class="card-body quiet">{clockNote}</p>}
      <Table caption={`Ledger of ${schedule.id}`} columns={LEDGER} rows={lines} rowKey={({ key }) => key} isBare />
    </section>
  )
}

const LEDGER: readonly Column<LedgerLine>[] = [
  { key: 'at', head: 'At', width: '170px', phone: 'title', cell: ({ at }) => <When at={at} /> },
  {
    key: 'outcome',
    head: 'Outcome',
    width: '140px',
    phone: 'side',
    cell: ({ cell, outcome }) => (
      <span class={`ink-${cell.ink}`}>
        {cell.sign} {outcome}
      </span>
    ),
  },
  { key: 'why', head: 'Why', phone: 'sub', title: ({ why }) => why, cell: ({ why }) => <span class="sub">{why}</span> },
  {
    key: 'job',
    head: 'Job',
    width: '100px',
    cell: ({ cell }) => (cell.href === undefined ? <span class="faint">–</span> : <a href={cell.href}>open</a>),
  },
  { key: 'took', head: 'Took', width: '100px', isNumber: true, cell: ({ took }) => took },
]

import type { GroupRow, SequenceRow } from '../../../protocol.js'
import { useApp } from '../../app-context.js'
import { plural } from '../../format/number.js'
import { Act } from '../../parts/act/act-button.js'
import { Bar } from '../../parts/bar.js'
import { BulkButton } from '../../parts/act/bulk.js'
import { Count } from '../../parts/count.js'
import { Empty } from '../../parts/empty.js'
import { Page } from '../../parts/page.js'
import { Mark } from '../../parts/state.js'
import { Table } from '../../parts/table.js'
import type { Column } from '../../parts/table.js'
import { jobsHref, term } from '../../route.js'
import { rowsOf, useTopic } from '../../use-topic.js'
import { groupLine, sequenceLine } from './computed.js'
import type { GroupLine, SequenceLine } from './computed.js'
import { OneGroup } from './one-group.js'
import { OneSequence } from './one-sequence.js'

export function GroupsPage() {
  const { page, id } = useApp().router.route.value
  if (id === undefined) return <All />
  return page === 'sequences' ? <OneSequence id={id} /> : <OneGroup id={id} />
}

function All() {
  const groups = useTopic<'groups'>('groups')
  const sequences = useTopic<'sequences'>('sequences')
  const [groupRows, sequenceRows] = [groups.snapshot, sequences.snapshot].map((view) =>
    view === undefined ? [] : rowsOf<GroupRow | SequenceRow>(view),
  )
  const lead = `${plural(groupRows?.length ?? 0, 'group')}, ${plural(sequenceRows?.length ?? 0, 'sequence')}. Unfinished first.`
  return (
    <Page title="Groups and sequences" held={groups} lead={lead}>
      <Groups rows={(groupRows ?? []) as GroupRow[]} />
      <Sequences rows={(sequenceRows ?? []) as SequenceRow[]} />
    </Page>
  )
}

const GROUP_CODE = `const group = mill.group('campaign-42', { whenDone: [report, {}] })
await mill.enqueueMany(newsletter, contacts, { group })
await group.seal()`
const SEQUENCE_CODE = `const sequence = await mill.sequence(archive, contacts, { key: 'archive-42' })
await sequence.start()
await sequence.progress()`

function Groups({ rows }: { rows: readonly GroupRow[] }) {
  const { clock, zone } = useApp()
  const lines = rows.map((row) => groupLine(row, clock.now.value, zone.value))
  return (
    <section class="section">
      <h2>Groups</h2>
      {lines.length === 0 ? (
        <div class="card">
          <Empty code={GROUP_CODE}>There are no groups. A group is many jobs with one end:</Empty>
        </div>
      ) : (
        <Table caption="Groups" columns={GROUP_COLUMNS} rows={lines} rowKey={({ id }) => id} />
      )}
    </section>
  )
}

function Sequences({ rows }: { rows: readonly SequenceRow[] }) {
  const { clock, zone } = useApp()
  const lines = rows.map((row) => sequenceLine(row, clock.now.value, zone.value))
  return (
    <section class="section">
      <h2>Sequences</h2>
      {lines.length === 0 ? (
        <div class="card">
          <Empty code={SEQUENCE_CODE}>
            There are no sequences. A sequence works off a list, one item after the other:
          </Empty>
        </div>
      ) : (
        <Table caption="Sequences" columns={SEQUENCE_COLUMNS} rows={lines} rowKey={({ id }) => id} />
      )}
    </section>
  )
}

const GROUP_COLUMNS: readonly Column<GroupLine>[] = [
  {
    key: 'id',
    head: 'Group',
    width: '22%',
    phone: 'title',
    title: ({ id }) => id,
    cell: ({ id, href }) => (
      <a class="row-link" href={href}>
        {id}
      </a>
    ),
  },
  {
    key: 'state',
    head: 'State',
    width: '112px',
    phone: 'lead',
    cell: ({ mark, word }) => <Mark name={mark} word={word} />,
  },
  {
    key: 'bar',
    head: 'Progress',
    phone: 'sub',
    cell: ({ segments, total, ended }) => <Bar segments={segments} total={total} label={`${ended} have ended`} />,
  },
  {
    key: 'ended',
    head: 'Ended',
    width: '152px',
    isNumber: true,
    phone: 'side',
    cell: ({ ended, id }) => <a href={jobsHref(term('group', id))}>{ended}</a>,
  },
  {
    key: 'failed',
    head: 'Failed',
    width: '72px',
    isNumber: true,
    hide: 4,
    cell: ({ failed, failedHref }) => <Count value={failed} href={failedHref} ink="failed" />,
  },
  { key: 'note', head: 'End', width: '172px', isNumber: true, hide: 3, cell: ({ note }) => note },
  {
    key: 'actions',
    head: '',
    width: '118px',
    phone: 'end',
    cell: ({ id, failed, isUnfinished }) => (
      <span class="row-actions">
        {failed === 0 ? null : (
          <BulkButton
            verb="bulk.retry"
            of={{ query: `${term('group', id)} state:failed` }}
            label={`Retry ${failed}`}
            shortcut="retry"
          />
        )}
        {isUnfinished ? (
          <Act wish={{ verb: 'group.pause', target: id }} label={`Pause ${id}`} icon="pause" shortcut="pause" />
        ) : null}
      </span>
    ),
  },
]

const SEQUENCE_COLUMNS: readonly Column<SequenceLine>[] = [
  {
    key: 'id',
    head: 'Sequence',
    width: '22%',
    phone: 'title',
    title: ({ name, id }) => `${name} ${id}`,
    cell: ({ name, href }) => (
      <a class="row-link" href={href}>
        {name}
      </a>
    ),
  },
  {
    key: 'state',
    head: 'State',
    width: '112px',
    phone: 'lead',
    title: ({ word }) => word,
    cell: ({ mark, word }) => <Mark name={mark} word={word} />,
  },
  {
    key: 'bar',
    head: 'Progress',
    width: '24%',
    hide: 4,
    cell: ({ segments, total, done }) => <Bar segments={segments} total={total} label={`${done} items`} />,
  },
  { key: 'done', head: 'Items', width: '124px', isNumber: true, phone: 'side', cell: ({ done }) => done },
  {
    key: 'note',
    head: 'Pace · error',
    phone: 'sub',
    title: ({ note }) => note,
    cell: ({ note, isError }) => <span class={isError ? 'ink-failed' : 'sub'}>{note}</span>,
  },
  {
    key: 'actions',
    head: '',
    width: '92px',
    phone: 'end',
    cell: ({ id, likely, state }) => (
      <span class="row-actions">
        {likely === undefined ? null : (
          <Act wish={{ verb: likely.verb, target: id, expect: state }} label={likely.label} shortcut="pause" />
        )}
      </span>
    ),
  },
]

import type { ComponentChildren } from 'preact'
import { useRef } from 'preact/hooks'
import { JobMenu, LikelyAct } from '../../parts/act/job-acts.js'
import { State } from '../../parts/state.js'
import { Table } from '../../parts/table.js'
import type { Column } from '../../parts/table.js'
import { Ago, Since, Took } from '../../parts/time.js'
import type { KeptRow } from './computed.js'
import { rangeOf } from './selection.js'

export interface JobTableProps {
  readonly rows: readonly KeptRow[]
  readonly chosen?: ReadonlySet<string>
  readonly onChosen?: (chosen: ReadonlySet<string>) => void
  readonly isWorkflows?: boolean
  readonly foot?: ComponentChildren
}

/** Jobs by row: state, name and title, why, and what can be done. */
export function JobTable({ rows, chosen, onChosen, isWorkflows, foot }: JobTableProps) {
  const last = useRef<string | undefined>(undefined)
  const choose = (id: string, isRange: boolean): void => {
    if (chosen === undefined || onChosen === undefined) return
    const ids =
      isRange && last.current !== undefined
        ? rangeOf(
            rows.map(({ line }) => line.id),
            last.current,
            id,
          )
        : [id]
    const next = new Set(chosen)
    for (const each of ids)
      if (!isRange && next.has(each)) next.delete(each)
      else next.add(each)
    last.current = id
    onChosen(next)
  }
  const own = isWorkflows ? WORKFLOW_COLUMNS : JOB_COLUMNS
  const columns = chosen === undefined ? own : [checkColumn(chosen, choose), ...own]
  return (
    <Table
      caption={isWorkflows ? 'Workflows' : 'Jobs'}
      columns={columns}
      rows={rows}
      rowKey={({ line }) => line.id}
      rowClass={({ hasLeft }) => (hasLeft ? 'left' : '')}
      isSelected={({ line }) => chosen?.has(line.id) ?? false}
      foot={foot}
    />
  )
}

function checkColumn(chosen: ReadonlySet<string>, choose: (id: string, isRange: boolean) => void): Column<KeptRow> {
  return {
    key: 'select',
    head: '',
    width: '40px',
    cell: ({ line }) => (
      <input
        type="checkbox"
        aria-label={`Select ${line.job} ${line.title}`}
        checked={chosen.has(line.id)}
        onClick={(event) => choose(line.id, event.shiftKey)}
      />
    ),
  }
}

const STATE: Column<KeptRow> = {
  key: 'state',
  head: 'State',
  width: '116px',
  phone: 'lead',
  cell: ({ line }) => <State state={line.state} />,
}
const NAME: Column<KeptRow> = {
  key: 'job',
  head: 'Job · title',
  width: '25%',
  phone: 'title',
  title: ({ line }) => `${line.job} ${line.title}`,
  cell: ({ line }) => (
    <span class="two-lines">
      <a class="row-link cut" href={line.href}>
        {line.job}
      </a>
      {line.title === '' ? null : (
        <bdi class="sub cut" dir="auto">
          {line.title}
        </bdi>
      )}
    </span>
  ),
}
const WHY: Column<KeptRow> = {
  key: 'why',
  head: 'Why · error',
  phone: 'sub',
  title: ({ line }) => line.why,
  cell: ({ line }) => <span class={line.isError ? 'ink-failed' : 'sub'}>{line.why}</span>,
}
const AGE: Column<KeptRow> = {
  key: 'age',
  head: 'Changed',
  width: '124px',
  isNumber: true,
  hide: 5,
  phone: 'side',
  cell: ({ line }) => <Ago at={line.at} />,
}
const ACTIONS: Column<KeptRow> = {
  key: 'actions',
  head: '',
  width: '84px',
  phone: 'end',
  cell: ({ line }) => (
    <span class="row-actions">
      <LikelyAct id={line.id} state={line.state} name={line.job} />
      <JobMenu id={line.id} state={line.state} name={line.job} />
    </span>
  ),
}

const JOB_COLUMNS: readonly Column<KeptRow>[] = [
  STATE,
  NAME,
  WHY,
  {
    key: 'queue',
    head: 'Queue',
    width: '104px',
    hide: 2,
    title: ({ line }) => line.queue,
    cell: ({ line }) => line.queue,
  },
  { key: 'attempt', head: 'Attempt', width: '72px', isNumber: true, hide: 3, cell: ({ line }) => line.attempt },
  AGE,
  {
    key: 'took',
    head: 'Took',
    width: '92px',
    isNumber: true,
    hide: 1,
    cell: ({ line }) => (line.runningSince === undefined ? <Took ms={line.took} /> : <Since at={line.runningSince} />),
  },
  ACTIONS,
]

const WORKFLOW_COLUMNS: readonly Column<KeptRow>[] = [
  STATE,
  NAME,
  {
    key: 'step',
    head: 'Step now',
    width: '150px',
    hide: 3,
    title: ({ line }) => line.step,
    cell: ({ line }) => line.step,
  },
  { key: 'steps', head: 'Steps', width: '64px', isNumber: true, hide: 4, cell: ({ line }) => line.stepsDone },
  WHY,
  AGE,
  ACTIONS,
]

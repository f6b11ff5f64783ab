import type { SequenceFields, SequenceItemRow, Snapshot, Verb } from '../../../protocol.js'
import { useApp } from '../../app-context.js'
import { Act } from '../../parts/act/act-button.js'
import { Page } from '../../parts/page.js'
import { Mark } from '../../parts/state.js'
import { Table } from '../../parts/table.js'
import type { Column } from '../../parts/table.js'
import { jobHref } from '../../route.js'
import { rowsOf, useTopic } from '../../use-topic.js'
import { ErrorText } from '../job/attempts.js'
import { errorLines } from '../job/computed.js'
import { itemCells, itemLine, sequenceLine } from './computed.js'
import type { ItemLine } from './computed.js'

type View = Snapshot<SequenceFields, SequenceItemRow>

/** One sequence: its items in order, the error that stopped it, the verbs that apply now. */
export function OneSequence({ id }: { id: string }) {
  const held = useTopic<'sequence'>(`sequence:${id}`)
  const { snapshot } = held
  const title = snapshot === undefined ? 'Sequence' : (snapshot.fields.sequence.key ?? snapshot.fields.sequence.job)
  return (
    <Page
      title={title}
      held={held}
      lead={snapshot && <Lead fields={snapshot.fields} />}
      tools={snapshot && <Tools fields={snapshot.fields} />}
    >
      {snapshot && <Body view={snapshot} />}
    </Page>
  )
}

function Lead({ fields }: { fields: SequenceFields }) {
  const { clock, zone } = useApp()
  const { mark, word, done, note } = sequenceLine(fields.sequence, clock.now.value, zone.value)
  return (
    <>
      <Mark name={mark} word={word} /> {done} <span class="quiet break">{note}</span>
    </>
  )
}

const VERBS: readonly (readonly [Verb, string, string])[] = [
  ['sequence.start', 'Start', ''],
  ['sequence.pause', 'Pause', ''],
  ['sequence.resume', 'Resume', ''],
  [
    'sequence.cancel',
    'Cancel',
    'The item in hand is asked to stop, and no further item begins. Recorded items keep their results.',
  ],
  [
    'sequence.reset',
    'Reset',
    'All recorded results are forgotten, and the sequence begins with its first item when it is started.',
  ],
]

function Tools({ fields }: { fields: SequenceFields }) {
  const { sequence, verbs } = fields
  return (
    <>
      {VERBS.map(([verb, label, question]) => (
        <Act
          key={verb}
          wish={{ verb, target: sequence.id, expect: sequence.state }}
          label={label}
          subject={sequence.key ?? sequence.job}
          question={question}
          unavailable={verbs.includes(verb) ? undefined : `A sequence that is ${sequence.state} cannot do this.`}
        />
      ))}
      <a class="button" href={jobHref(sequence.id)}>
        As a job
      </a>
    </>
  )
}

function Body({ view }: { view: View }) {
  const { zone } = useApp()
  const { sequence, lastError, logTail } = view.fields
  const lines = rowsOf(view).map((item) => itemLine(item, zone.value))
  return (
    <>
      <div
        class="card card-body item-cells"
        role="img"
        aria-label={`${sequence.done} of ${sequence.total} items are done`}
      >
        {itemCells(sequence).map(({ key, kind, title }) => (
          <i key={key} class={`fill-${kind}`} title={title} />
        ))}
      </div>
      {lastError === null ? null : (
        <section class="card card-body">
          <h2>The error that stopped it</h2>
          <ErrorText error={errorLines(lastError)} isOpen />
        </section>
      )}
      {logTail.length === 0 ? null : (
        <section class="card card-body">
          <h2>Log of the item in hand</h2>
          <pre class="log-text">{logTail.join('\n')}</pre>
        </section>
      )}
      <section class="section">
        <h2>Output, newest 100 items</h2>
        <Table caption="Recorded items" columns={ITEMS} rows={lines} rowKey={({ key }) => key} />
      </section>
    </>
  )
}

const ITEMS: readonly Column<ItemLine>[] = [
  { key: 'number', head: 'Item', width: '80px', isNumber: true, phone: 'lead', cell: ({ number }) => number },
  {
    key: 'result',
    head: 'Result',
    phone: 'title',
    title: ({ result }) => result,
    cell: ({ result }) => <span class="mono">{result}</span>,
  },
  {
    key: 'log',
    head: 'Log',
    phone: 'sub',
    hide: 4,
    title: ({ log }) => log.join('\n'),
    cell: ({ log }) => <span class="sub">{log.at(-1) ?? ''}</span>,
  },
  { key: 'took', head: 'Took', width: '96px', isNumber: true, phone: 'side', cell: ({ took }) => took },
  { key: 'at', head: 'Ended', width: '92px', isNumber: true, hide: 5, cell: ({ at }) => at },
]

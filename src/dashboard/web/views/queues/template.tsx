import type { QueueRow, QueuesFields, Snapshot } from '../../../protocol.js'
import { useApp } from '../../app-context.js'
import { Empty } from '../../parts/empty.js'
import { Page, Said, VerdictMark } from '../../parts/page.js'
import { rowsOf, useTopic } from '../../use-topic.js'
import { OneQueue } from '../queue/template.js'
import { matching } from './computed.js'
import { QueueTable } from './queue-table.js'

export function QueuesPage() {
  const { id } = useApp().router.route.value
  return id === undefined ? <AllQueues /> : <OneQueue name={id} />
}

function AllQueues() {
  const held = useTopic<'queues'>('queues')
  const { snapshot } = held
  return (
    <Page title="Queues" held={held} lead={snapshot && <Lead view={snapshot} />} tools={<Filters />}>
      {snapshot && <Queues view={snapshot} />}
    </Page>
  )
}

function Lead({ view }: { view: Snapshot<QueuesFields, QueueRow> }) {
  const { kind, text } = view.fields.verdict
  return (
    <>
      <VerdictMark kind={kind} />
      <Said sentence={text} />
    </>
  )
}

function Filters() {
  const { router } = useApp()
  const { name = '', state = '' } = router.route.value.query
  return (
    <>
      <input
        class="field"
        type="search"
        aria-label="Filter by name"
        placeholder="Filter by name"
        value={name}
        onInput={({ currentTarget }) => router.set({ name: currentTarget.value || undefined }, true)}
      />
      <select
        class="field"
        aria-label="Filter by state"
        value={state}
        onChange={({ currentTarget }) => router.set({ state: currentTarget.value || undefined }, true)}
      >
        <option value="">every state</option>
        <option value="open">open</option>
        <option value="paused">paused</option>
        <option value="probing">probing</option>
      </select>
    </>
  )
}

function Queues({ view }: { view: Snapshot<QueuesFields, QueueRow> }) {
  const { name = '', state = '' } = useApp().router.route.value.query
  const all = rowsOf(view)
  const rows = matching(all, name, state)
  if (rows.length > 0) return <QueueTable rows={rows} />
  return (
    <div class="card">
      <Empty>{all.length === 0 ? 'Queues appear with their first job.' : 'No queue matches.'}</Empty>
    </div>
  )
}

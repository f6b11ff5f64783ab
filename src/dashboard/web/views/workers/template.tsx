import { useApp } from '../../app-context.js'
import { visible } from '../../format/text.js'
import { Empty } from '../../parts/empty.js'
import { Page, Said } from '../../parts/page.js'
import { Glyph } from '../../parts/state.js'
import { rowsOf, useTopic } from '../../use-topic.js'
import { WorkerTable } from './worker-table.js'
import { jobsHref, term } from '../../route.js'

/** What runs the jobs: slots, what each runs now, and who is missing. */
export function WorkersPage() {
  const held = useTopic<'workers'>('workers')
  const { snapshot } = held
  const asked = useApp().router.route.value.id
  const rows = snapshot === undefined ? [] : rowsOf(snapshot)
  return (
    <Page title="Workers" held={held} lead={snapshot && <Said sentence={snapshot.fields.text} />}>
      {snapshot === undefined || asked === undefined || rows.some(({ id }) => id === asked) ? null : (
        <div class="strip warn" role="status">
          <Glyph name="warn" />
          <span class="break">{`There is no worker "${visible(asked)}"; these are all.`}</span>
        </div>
      )}
      {snapshot?.fields.unknownNames.map(({ job, text }) => (
        <div key={job} class="strip warn">
          <Glyph name="warn" />
          <span>{text}</span>
          <a href={jobsHref(term('job', job))}>its jobs</a>
        </div>
      ))}
      {rows.length === 0 ? (
        <div class="card">
          <Empty code="await mill.start()">No workers are running. Call this in any process that has the jobs:</Empty>
        </div>
      ) : (
        <WorkerTable rows={rows} />
      )}
    </Page>
  )
}

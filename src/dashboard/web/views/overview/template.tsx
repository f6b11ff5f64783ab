import type { OverviewFields, QueueRow, Snapshot } from '../../../protocol.js'
import { useApp } from '../../app-context.js'
import { Act } from '../../parts/act/act-button.js'
import { Bar } from '../../parts/bar.js'
import { Chart } from '../../parts/chart/chart.js'
import { Page, Said, VerdictMark } from '../../parts/page.js'
import { Segments } from '../../parts/segments.js'
import { Due } from '../../parts/time.js'
import { Empty } from '../../parts/empty.js'
import { printRoute } from '../../route.js'
import { rowsOf, useTopic } from '../../use-topic.js'
import { FailureTable } from '../failures/failure-table.js'
import { QueueTable } from '../queues/queue-table.js'
import { SPAN_NAMES, charts, slotLines, tiles } from './computed.js'
import type { Tile } from './computed.js'
import { spanOf } from './query.js'

type View = Snapshot<OverviewFields, QueueRow>

/** Is everything fine, and where is the problem? */
export function OverviewPage() {
  const { router } = useApp()
  const span = spanOf(router.route.value)
  const held = useTopic<'overview'>(`overview:${span}`)
  const { snapshot } = held
  const options = SPAN_NAMES.map((name) => ({ name, href: printRoute({ page: 'overview', query: { span: name } }) }))
  return (
    <Page
      title="Overview"
      isTitleHidden
      held={held}
      lead={snapshot && <Verdict view={snapshot} />}
      tools={<Segments label="Time range" options={options} current={span} />}
    >
      {snapshot === undefined ? null : snapshot.fields.isEmpty ? (
        <NoJobs view={snapshot} />
      ) : (
        <Numbers view={snapshot} />
      )}
    </Page>
  )
}

function Verdict({ view }: { view: View }) {
  const { kind, text } = view.fields.verdict
  return (
    <>
      <VerdictMark kind={kind} />
      <Said sentence={text} />
    </>
  )
}

function Numbers({ view }: { view: View }) {
  const { clock, zone } = useApp()
  const { fields } = view
  return (
    <>
      <div class="tiles">
        {tiles(fields, clock.now.value, zone.value).map((tile) => (
          <TileCard key={tile.name} tile={tile} />
        ))}
      </div>
      <div class="columns-2">
        {charts(fields, zone.value).map((chart) => (
          <div key={chart.title} class="card card-body">
            <Chart {...chart} />
          </div>
        ))}
      </div>
      <Busiest view={view} />
      <div class="columns-3">
        <Failing fields={fields} />
        <div class="section-stack">
          <Slots fields={fields} />
          <Next fields={fields} />
        </div>
      </div>
    </>
  )
}

function TileCard({ tile }: { tile: Tile }) {
  const { name, number, unit, note, href, title, ink } = tile
  return (
    <a class="card tile" href={href} title={title}>
      <span class="tile-name">{name}</span>
      <span class="tile-line">
        <span class={`tile-number${ink === undefined ? '' : ` ink-${ink}`}`}>{number}</span>
        <span class="tile-unit">{unit}</span>
      </span>
      <span class="tile-note cut">{note}</span>
    </a>
  )
}

function Busiest({ view }: { view: View }) {
  return (
    <section class="section">
      <div class="section-head">
        <h2>Busiest queues</h2>
        <a href="#/queues">all {view.fields.queueCount} queues</a>
      </div>
      <QueueTable rows={rowsOf(view)} />
    </section>
  )
}

function Failing({ fields }: { fields: OverviewFields }) {
  return (
    <section class="section">
      <div class="section-head">
        <h2>Failing now</h2>
        <a href="#/failures">all failures</a>
      </div>
      {fields.failing.length === 0 ? (
        <div class="card">
          <Empty>No job has failed in this range.</Empty>
        </div>
      ) : (
        <FailureTable rows={fields.failing} isShort />
      )}
    </section>
  )
}

function Slots({ fields }: { fields: OverviewFields }) {
  return (
    <section class="section">
      <div class="section-head">
        <h2>Slots by job</h2>
        <a href="#/workers">all workers</a>
      </div>
      <div class="card card-body">
        <ul class="slots">
          {slotLines(fields).map(({ name, count, percent, href }) => (
            <li key={name}>
              <span class="cut" title={name}>
                {href === undefined ? <span class="faint">{name}</span> : <a href={href}>{name}</a>}
              </span>
              <Bar
                segments={href === undefined ? [] : [{ kind: 'running', value: percent }]}
                total={100}
                label={`${name}: ${count} slots`}
              />
              <span class="num">{count}</span>
            </li>
          ))}
        </ul>
      </div>
    </section>
  )
}

function Next({ fields }: { fields: OverviewFields }) {
  return (
    <section class="section">
      <div class="section-head">
        <h2>Next up</h2>
        <a href="#/upcoming">all upcoming</a>
      </div>
      <div class="card card-body">
        {fields.next.length === 0 ? <p class="quiet">Nothing is scheduled in the next 24 hours.</p> : null}
        <ul class="next">
          {fields.next.map(({ id, at, job, title, schedule }) => (
            <li key={`${schedule}${id}${at}`}>
              <span class="cut strong">{title ?? schedule ?? job}</span>
              <span class="quiet">
                <Due at={at} />
              </span>
            </li>
          ))}
        </ul>
      </div>
    </section>
  )
}

const SNIPPET = `import { job, millrace } from 'millrace'

const hello = job('hello', async (p: { name: string }) => \`Hello \${p.name}\`)
const mill = await millrace({ jobs: { hello } })
await mill.start()
await mill.enqueue(hello, { name: 'world' })`

function NoJobs({ view }: { view: View }) {
  const { demoJob } = view.fields
  return (
    <div class="card">
      <Empty code={SNIPPET}>No jobs yet. Paste this and watch it run:</Empty>
      {demoJob === null ? null : (
        <div class="card-body">
          <Act
            wish={{ verb: 'enqueue', target: demoJob, args: { payload: '{}' } }}
            label={`Enqueue ${demoJob}`}
            isPrimary
          />
        </div>
      )}
    </div>
  )
}

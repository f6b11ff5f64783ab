import { FAILURE_SPANS } from '../../../protocol.js'
import type { FailureFields, FailureRow, FailuresFields, JobRow, Snapshot } from '../../../protocol.js'
import { useApp } from '../../app-context.js'
import { BulkButton } from '../../parts/act/bulk.js'
import { Bar } from '../../parts/bar.js'
import { Empty } from '../../parts/empty.js'
import { Absent, Page, Said } from '../../parts/page.js'
import { Segments } from '../../parts/segments.js'
import { Ago, When } from '../../parts/time.js'
import { jobHref, jobsHref, printRoute } from '../../route.js'
import { rowsOf, useTopic } from '../../use-topic.js'
import { ErrorText } from '../job/attempts.js'
import { errorLines } from '../job/computed.js'
import { jobLine } from '../jobs/computed.js'
import { JobTable } from '../jobs/job-table.js'
import { differenceLines, failureLine, mutedWith, retryableExample, unmuted } from './computed.js'
import { FailureTable } from './failure-table.js'
import { failureSpan } from './query.js'

export function FailuresPage() {
  const { id } = useApp().router.route.value
  return id === undefined ? <AllFailures /> : <OneFailure print={id} />
}

function AllFailures() {
  const { router, settings, clock } = useApp()
  const span = failureSpan(router.route.value)
  const held = useTopic<'failures'>(`failures:${span}`)
  const { snapshot } = held
  const options = FAILURE_SPANS.map((name) => ({
    name: name === 'deploy' ? 'since deploy' : name,
    href: printRoute({ page: 'failures', query: { span: name } }),
  }))
  const current = span === 'deploy' ? 'since deploy' : span
  return (
    <Page
      title="Failures"
      held={held}
      lead={snapshot && <Said sentence={snapshot.fields.text} />}
      tools={<Segments label="Time range" options={options} current={current} />}
    >
      {snapshot && <Groups view={snapshot} rows={unmuted(rowsOf(snapshot), settings.muted.value, clock.now.peek())} />}
    </Page>
  )
}

function Groups({ view, rows }: { view: Snapshot<FailuresFields, FailureRow>; rows: readonly FailureRow[] }) {
  if (rows.length > 0) return <FailureTable rows={rows} />
  const last = view.fields.lastFailureAt
  return (
    <div class="card">
      <Empty>
        No failures in this range.{' '}
        {last === null ? null : (
          <>
            Last failure: <When at={last} short />.
          </>
        )}
      </Empty>
    </div>
  )
}

function OneFailure({ print }: { print: string }) {
  const held = useTopic<'failure'>(`failure:${print}`)
  const { snapshot } = held
  const title =
    snapshot === undefined ? 'Failure' : `${snapshot.fields.failure.error} in ${snapshot.fields.failure.job}`
  return (
    <Page
      title={title}
      held={held}
      lead={snapshot && <Lead fields={snapshot.fields} />}
      tools={snapshot && <Tools view={snapshot} />}
    >
      {snapshot && <Body view={snapshot} />}
    </Page>
  )
}

function Lead({ fields }: { fields: FailureFields }) {
  const { first, last, count, message } = failureLine(fields.failure)
  return (
    <>
      <b class="strong">{message}</b>{' '}
      <span class="quiet">
        {count} failed {count === 1 ? 'attempt' : 'attempts'}, first <When at={first} short />, last <Ago at={last} />
      </span>
    </>
  )
}

function Tools({ view }: { view: Snapshot<FailureFields, JobRow> }) {
  const { fields } = view
  const { settings, clock } = useApp()
  const { fingerprint } = fields.failure
  const { retryLabel } = failureLine(fields.failure)
  const mute = (): void => {
    settings.muted.value = mutedWith(settings.muted.peek(), fingerprint, clock.now.peek())
  }
  const example = retryableExample(view)
  return (
    <>
      {example === undefined ? null : <BulkButton verb="bulk.retry" of={{ ids: [example] }} label="Retry one first" />}
      {retryLabel === undefined ? null : (
        <>
          <BulkButton verb="bulk.retry" of={{ fingerprint }} label={retryLabel} shortcut="retry" />
          <BulkButton verb="bulk.delete" of={{ fingerprint }} label="Delete all…" />
        </>
      )}
      <button type="button" class="button" onClick={mute} title="Hides it from the list in this browser">
        Mute for 24 h
      </button>
    </>
  )
}

function Body({ view }: { view: Snapshot<FailureFields, JobRow> }) {
  const { fields } = view
  const rows = rowsOf(view).map((row) => ({ line: jobLine(row), hasLeft: false }))
  return (
    <>
      <Differences fields={fields} absent={view.absent?.['differences']} />
      <section class="card">
        <div class="card-head">
          <h2>Examples</h2>
        </div>
        {fields.examples.map(({ id, at, error }, i) => (
          <div key={id} class="attempt">
            <div class="attempt-head">
              <a href={jobHref(id)} class="mono">
                {id.slice(0, 8)}
              </a>
              <span class="quiet">
                <When at={at} />
              </span>
            </div>
            {error === null ? null : <ErrorText error={errorLines(error)} isOpen={i === 0} />}
          </div>
        ))}
      </section>
      <section class="section">
        <div class="section-head">
          <h2>Affected jobs</h2>
          {fields.query === null ? null : <a href={jobsHref(fields.query)}>all of them</a>}
        </div>
        <JobTable rows={rows} />
      </section>
    </>
  )
}

/** What failed jobs have in common that done jobs have not. */
function Differences({ fields, absent }: { fields: FailureFields; absent: string | undefined }) {
  if (fields.differences === null) return <Absent text={absent} />
  const of = fields.differencesOf
  return (
    <section class="card">
      <div class="card-head">
        <h2>What is different about them</h2>
        {of === null ? null : (
          <span class="quiet">
            {of.failed} failed against {of.done} done jobs
          </span>
        )}
      </div>
      {fields.differences.length === 0 ? (
        <p class="card-body quiet">Nothing sets them apart from done jobs of the same name.</p>
      ) : null}
      <ul class="card-body differences">
        {differenceLines(fields.differences).map(({ what, failed, done, failedShare, doneShare }) => (
          <li key={what}>
            <span class="mono break">{what}</span>
            <span class="quiet">failed</span>
            <Bar segments={[{ kind: 'failed', value: failedShare }]} total={100} label={`${failed} of failed jobs`} />
            <span class="num">{failed}</span>
            <span class="quiet">done</span>
            <Bar segments={[{ kind: 'done', value: doneShare }]} total={100} label={`${done} of done jobs`} />
            <span class="num">{done}</span>
          </li>
        ))}
      </ul>
    </section>
  )
}

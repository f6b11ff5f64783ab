import { useState } from 'preact/hooks'
import type { JobRow, ListFields, Snapshot } from '../../../protocol.js'
import { useApp } from '../../app-context.js'
import { BulkMenu } from '../../parts/act/bulk.js'
import { Empty } from '../../parts/empty.js'
import { Page } from '../../parts/page.js'
import { Glyph } from '../../parts/state.js'
import { jobsHref, printRoute } from '../../route.js'
import { useTopic } from '../../use-topic.js'
import {
  SORT_TEXTS,
  histogramBars,
  keptRows,
  leadText,
  reachedText,
  removableTerms,
  sortHref,
  stateChips,
  wrongPart,
} from './computed.js'
import { JobTable } from './job-table.js'
import { SavedSearches } from './saved-searches.js'
import { listTopic, sortOf } from './query.js'
import { useLastGood, useList } from './use-list.js'
import type { KeptList } from './use-list.js'

type View = Snapshot<ListFields, JobRow>

/** Find one among a million. */
export function JobsPage() {
  const { router } = useApp()
  const route = router.route.value
  const isWorkflows = route.page === 'workflows'
  const topic = listTopic(route)
  const newest = useTopic<'list'>(topic)
  const snapshot = useLastGood(newest.snapshot)
  const held = { ...newest, snapshot }
  const list = useList(snapshot, sortOf(route), isWorkflows)
  const lead = snapshot && leadText(list.order.length, snapshot.fields, list.more.cursor !== null, isWorkflows)
  return (
    <Page
      title={isWorkflows ? 'Workflows' : 'Jobs'}
      held={held}
      lead={lead}
      tools={snapshot && <Tools view={snapshot} />}
    >
      {snapshot && (
        <div class={`section-stack${newest.snapshot === undefined ? ' list-waiting' : ''}`}>
          <List view={snapshot} list={list} isWorkflows={isWorkflows} />
        </div>
      )}
    </Page>
  )
}

function Tools({ view }: { view: View }) {
  const { router } = useApp()
  const { sorts, sort, query } = view.fields
  const page = router.route.value.page === 'workflows' ? 'workflows' : 'jobs'
  return (
    <>
      <select
        class="field"
        aria-label="Order"
        value={sort}
        onChange={({ currentTarget }) => router.go(sortHref(page, query, currentTarget.value as typeof sort))}
      >
        {sorts.map((each) => (
          <option key={each} value={each}>
            {SORT_TEXTS[each]}
          </option>
        ))}
      </select>
      <SavedSearches query={query} />
      <a class="button" href="#/enqueue">
        Enqueue
      </a>
    </>
  )
}

function List({ view, list, isWorkflows }: { view: View; list: KeptList; isWorkflows: boolean }) {
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set())
  const { fields } = view
  const rows = keptRows(list.order, list.seen, view.rows)
  return (
    <>
      <Problem fields={fields} />
      <States fields={fields} isWorkflows={isWorkflows} />
      <Histogram fields={fields} />
      {fields.hidden.map((text) => (
        <p key={text} class="faint">
          {text}
        </p>
      ))}
      <Selection
        fields={fields}
        chosen={chosen}
        onClear={() => setChosen(new Set())}
        newer={list.newer}
        onNewer={list.refresh}
      />
      {rows.length === 0 ? (
        <NoMatch fields={fields} />
      ) : (
        <JobTable
          rows={rows}
          chosen={chosen}
          onChosen={setChosen}
          isWorkflows={isWorkflows}
          foot={<Foot list={list} />}
        />
      )}
    </>
  )
}

function Problem({ fields }: { fields: ListFields }) {
  const { router } = useApp()
  if (fields.problem === null) return null
  const [before, wrong, after] = wrongPart(router.route.value.query['q'] ?? '', fields.problem)
  return (
    <div class="strip warn" role="alert">
      <Glyph name="warn" />
      <span class="mono">
        {before}
        <u class="wrong">{wrong}</u>
        {after}
      </span>
      <span>{fields.problem.text}</span>
    </div>
  )
}

function States({ fields, isWorkflows }: { fields: ListFields; isWorkflows: boolean }) {
  const page = isWorkflows ? 'workflows' : 'jobs'
  return (
    <nav class="states" aria-label="States">
      {stateChips(fields.query, fields.counts).map(({ state, count, title, q, isCurrent }) => (
        <a key={state} href={printRoute({ page, query: { q } })} aria-current={isCurrent} title={title}>
          {state === 'all' ? null : <Glyph name={state} />}
          {state} <b>{count}</b>
        </a>
      ))}
    </nav>
  )
}

function Histogram({ fields }: { fields: ListFields }) {
  const { zone } = useApp()
  const bars = histogramBars(fields.histogram, zone.value)
  if (bars.length === 0) return null
  return (
    <div class="histogram" role="img" aria-label="Matches over time">
      {bars.map(({ key, height, title }) => (
        <i key={key} title={title} style={{ height: `${height}%` }} />
      ))}
    </div>
  )
}

/** What can be done with many jobs: those that are selected, or all that match. */
function Selection({
  fields,
  chosen,
  onClear,
  newer,
  onNewer,
}: {
  fields: ListFields
  chosen: ReadonlySet<string>
  onClear: () => void
  newer: number
  onNewer: () => void
}) {
  const of = chosen.size === 0 ? { query: fields.query } : { ids: [...chosen] }
  return (
    <div class="selection">
      <BulkMenu
        of={of}
        label={chosen.size === 0 ? 'Bulk' : `${chosen.size} selected`}
        subject={chosen.size === 0 ? 'all that match' : 'these'}
      />
      {chosen.size === 0 ? null : (
        <button type="button" class="link-button" onClick={onClear}>
          Clear the selection
        </button>
      )}
      <button
        type="button"
        class={`button pill${newer === 0 ? ' unseen' : ''}`}
        data-key="newer"
        aria-hidden={newer === 0}
        onClick={onNewer}
      >
        ↑ {newer} newer · show
      </button>
    </div>
  )
}

function Foot({ list }: { list: KeptList }) {
  const { clock, zone } = useApp()
  const { cursor, reached, isLoading, problem } = list.more
  return (
    <>
      <span aria-live="polite">{reached === undefined ? '' : reachedText(reached, clock.now.peek(), zone.value)}</span>
      {problem === undefined ? null : <span class="ink-failed">{problem}</span>}
      {cursor === null ? (
        <span>These are all.</span>
      ) : (
        <button type="button" class="button" aria-disabled={isLoading} onClick={list.loadMore}>
          {isLoading ? 'Searching…' : '50 older'}
        </button>
      )}
    </>
  )
}

function NoMatch({ fields }: { fields: ListFields }) {
  const terms = removableTerms(fields.query)
  if (terms.length === 0)
    return (
      <div class="card">
        <Empty>There are no jobs.</Empty>
      </div>
    )
  return (
    <div class="card">
      <Empty>No job matches all of these. Remove one to see more:</Empty>
      <div class="card-body buttons">
        {terms.map(({ term, without }) => (
          <a key={term} class="chip mono" href={jobsHref(without)}>
            {term} ✕
          </a>
        ))}
      </div>
    </div>
  )
}

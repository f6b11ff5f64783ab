import type { QueueFields, Snapshot, WorkerRow } from '../../../protocol.js'
import { useApp } from '../../app-context.js'
import { Act } from '../../parts/act/act-button.js'
import { Bar } from '../../parts/bar.js'
import { Chart } from '../../parts/chart/chart.js'
import { Count } from '../../parts/count.js'
import { Menu } from '../../parts/menu.js'
import { Page } from '../../parts/page.js'
import { Segments } from '../../parts/segments.js'
import { Mark } from '../../parts/state.js'
import { When } from '../../parts/time.js'
import { jobsHref, printRoute } from '../../route.js'
import { rowsOf, useTopic } from '../../use-topic.js'
import { FailureTable } from '../failures/failure-table.js'
import { SPAN_NAMES, charts } from '../overview/computed.js'
import { spanOf } from '../overview/query.js'
import { queueLine } from '../queues/computed.js'
import { queueTopic } from '../queues/query.js'
import { WorkerTable } from '../workers/worker-table.js'
import { facts, mostRunning, pauseChoices } from './computed.js'

type View = Snapshot<QueueFields, WorkerRow>

/** One queue: its numbers, charts, jobs, limits, pauses and workers. */
export function OneQueue({ name }: { name: string }) {
  const { router } = useApp()
  const span = spanOf(router.route.value)
  const held = useTopic<'queue'>(queueTopic(router.route.value))
  const { snapshot } = held
  const options = SPAN_NAMES.map((each) => ({
    name: each,
    href: printRoute({ page: 'queues', id: name, query: { span: each } }),
  }))
  const tools = (
    <>
      <Segments label="Time range" options={options} current={span} />
      {snapshot === undefined ? null : <Tools view={snapshot} />}
    </>
  )
  return (
    <Page title={name} held={held} lead={snapshot && <Lead view={snapshot} />} tools={tools}>
      {snapshot && <Body view={snapshot} />}
    </Page>
  )
}

function Lead({ view }: { view: View }) {
  const { clock, zone } = useApp()
  const { mark, word, why } = queueLine(view.fields.queue, clock.now.value, zone.value)
  return (
    <>
      <Mark name={mark} word={word} /> <span class="quiet">{why}</span>
    </>
  )
}

function Tools({ view }: { view: View }) {
  const { actions, clock } = useApp()
  const { name, state, failed } = view.fields.queue
  const isPaused = state === 'paused'
  const expect = isPaused ? 'paused' : 'open'
  const pauses = pauseChoices(clock.now.value).map(({ label, until }) => ({
    label,
    unavailable: actions.refusal('queue.pause'),
    onClick: () => void actions.act({ verb: 'queue.pause', target: name, args: { until } }),
  }))
  return (
    <>
      <Act
        wish={{ verb: isPaused ? 'queue.resume' : 'queue.pause', target: name, expect }}
        label={isPaused ? 'Resume' : 'Pause'}
        shortcut="pause"
      />
      <Act
        wish={{ verb: 'queue.retryOne', target: name }}
        label="Retry the oldest failed"
        unavailable={failed.n === 0 ? 'No job of this queue has failed.' : undefined}
      />
      <Menu label="Pause until" items={pauses} />
    </>
  )
}

function Body({ view }: { view: View }) {
  const { clock, zone } = useApp()
  const { fields } = view
  const workers = rowsOf(view)
  return (
    <>
      <dl class="facts">
        {facts(fields.queue, clock.now.value, zone.value).map(({ name, value, href }) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd class="strong">{href === undefined ? value : <a href={href}>{value}</a>}</dd>
          </div>
        ))}
      </dl>
      <div class="columns-2">
        {charts(fields, zone.value).map((chart) => (
          <div key={chart.title} class="card card-body">
            <Chart {...chart} />
          </div>
        ))}
      </div>
      <div class="columns-2">
        <Jobs fields={fields} />
        <Limits fields={fields} />
      </div>
      {fields.failing.length === 0 ? null : (
        <section class="section">
          <h2>Failing here</h2>
          <FailureTable rows={fields.failing} isShort />
        </section>
      )}
      <History fields={fields} />
      {workers.length === 0 ? null : (
        <section class="section">
          <h2>Workers that serve it</h2>
          <WorkerTable rows={workers} />
        </section>
      )}
    </>
  )
}

function Jobs({ fields }: { fields: QueueFields }) {
  const most = mostRunning(fields)
  return (
    <section class="section">
      <h2>Jobs by name</h2>
      <div class="card card-body">
        {fields.byJob.length === 0 ? <p class="quiet">No job of this queue runs now.</p> : null}
        <ul class="slots">
          {fields.byJob.map(({ job, running }) => (
            <li key={job}>
              <a class="cut" href={jobsHref(`job:${job}`)} title={job}>
                {job}
              </a>
              <Bar segments={[{ kind: 'running', value: running }]} total={most} label={`${job}: ${running} running`} />
              <span class="num">{running}</span>
            </li>
          ))}
        </ul>
      </div>
    </section>
  )
}

function Limits({ fields }: { fields: QueueFields }) {
  if (fields.limitKeys === null) return null
  return (
    <section class="section">
      <h2>Limit keys that wait most</h2>
      <div class="card card-body">
        {fields.limitKeys.length === 0 ? <p class="quiet">No limit holds a job here.</p> : null}
        <ul class="slots">
          {fields.limitKeys.map(({ of, key, waiting, running, max }) => (
            <li key={`${of} ${key}`}>
              <span class="cut" title={`${of} ${key}`}>
                {of} <b class="strong">{key}</b>
              </span>
              <Bar
                segments={[{ kind: 'running', value: running }]}
                total={max ?? running}
                label={`${running} of ${max ?? 'no limit'} slots`}
              />
              <Count value={waiting.n} />
            </li>
          ))}
        </ul>
      </div>
    </section>
  )
}

function History({ fields }: { fields: QueueFields }) {
  if (fields.history.length === 0) return null
  return (
    <section class="section">
      <h2>Pauses and probes</h2>
      <ul class="card card-body log">
        {fields.history.map(({ at, text }) => (
          <li key={`${at}${text}`}>
            <span class="faint">
              <When at={at} />
            </span>
            <span>{text}</span>
          </li>
        ))}
      </ul>
    </section>
  )
}

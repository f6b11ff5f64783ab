import { useState } from 'preact/hooks'
import type { JobFields, Snapshot, StepRow } from '../../../protocol.js'
import { useApp } from '../../app-context.js'
import { seconds } from '../../format/duration.js'
import { visible } from '../../format/text.js'
import { Act } from '../../parts/act/act-button.js'
import { Id } from '../../parts/copy.js'
import { jobActs, urgentVerb } from '../../parts/act/job-act-list.js'
import { Page } from '../../parts/page.js'
import { State } from '../../parts/state.js'
import { Ago, When } from '../../parts/time.js'
import { Timeline } from '../../parts/timeline.js'
import { rowsOf, useTopic } from '../../use-topic.js'
import { Attempts } from './attempts.js'
import { alreadyRequested, facts, outsideLinks, whyText } from './computed.js'
import { CopyMenu } from './copy-menu.js'
import { EditJob } from './edit-job.js'
import { Around, Lately } from './around.js'
import { SendEvent } from './send-event.js'
import { Steps } from './steps.js'
import { jobTimeline } from './timeline.js'
import { Values } from './values.js'

type View = Snapshot<JobFields, StepRow>

/** What happened, and what to do. */
export function JobPage() {
  const { id = '' } = useApp().router.route.value
  const held = useTopic<'job'>(`job:${id}`)
  const { snapshot } = held
  const title =
    snapshot === undefined
      ? 'Job'
      : `${snapshot.fields.job}${snapshot.fields.title === null ? '' : ` · ${visible(snapshot.fields.title)}`}`
  return (
    <Page
      title={title}
      held={held}
      lead={snapshot && <Lead job={snapshot.fields} />}
      tools={snapshot && <Tools job={snapshot.fields} />}
    >
      {snapshot && <Body view={snapshot} />}
    </Page>
  )
}

function Lead({ job }: { job: JobFields }) {
  return (
    <span class="job-lead">
      <State state={job.state} />
      <span class="quiet">
        <Ago at={job.changedAt} />
      </span>
    </span>
  )
}

function Tools({ job }: { job: JobFields }) {
  const acts = jobActs(job.state)
  const urgent = urgentVerb(job.state)
  return (
    <>
      {job.workflow?.waitingFor.map(({ event, address }) =>
        event === null ? null : <SendEvent key={address} job={job} event={event} />,
      )}
      {acts.map(({ verb, label, unavailable, question, shortcut }) => (
        <Act
          key={verb}
          wish={{ verb, target: job.id, expect: job.state }}
          isPrimary={verb === urgent}
          label={label}
          unavailable={unavailable ?? alreadyRequested(job, verb)}
          subject={job.job}
          question={question(job.job)}
          {...(shortcut === undefined ? {} : { shortcut })}
        />
      ))}
      <EditJob job={job} />
      <CopyMenu job={job} />
    </>
  )
}

function Body({ view }: { view: View }) {
  const { fields: job } = view
  const steps = rowsOf(view)
  return (
    <>
      <WhyStrip job={job} />
      <Facts job={job} />
      {job.kind === 'workflow' ? <Steps job={job} steps={steps} /> : <History job={job} />}
      {job.kind === 'workflow' && job.lastError === null ? null : <Attempts job={job} />}
      <Values job={job} />
      <Around job={job} />
      <Lately job={job} />
      <WhoDidWhat job={job} />
    </>
  )
}

function WhyStrip({ job }: { job: JobFields }) {
  const { clock } = useApp()
  const text = whyText(job, seconds(clock.now.value - (job.startedAt ?? clock.now.value)))
  if (text === '') return null
  return (
    <div class={`strip${job.state === 'failed' || job.state === 'parked' ? ' bad' : ''}`}>
      <span class="lead break">{text}</span>
      {job.why?.blockers.map(({ kind, id, link }) =>
        link === null ? null : <a key={id} href={link}>{`the ${kind} ${id.slice(0, 8)}`}</a>,
      )}
    </div>
  )
}

function Facts({ job }: { job: JobFields }) {
  const { session } = useApp()
  return (
    <dl class="facts">
      <div>
        <dt>id</dt>
        <dd>
          <Id id={job.id} />
        </dd>
      </div>
      {facts(job).map(({ name, value, href }) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{href === undefined ? value : <a href={href}>{value}</a>}</dd>
        </div>
      ))}
      <div>
        <dt>made</dt>
        <dd>
          <When at={job.createdAt} />
        </dd>
      </div>
      {outsideLinks(session.links, job).map(({ name, href }) => (
        <div key={name}>
          <dd>
            <a href={href} rel="noreferrer" target="_blank">
              {name} ↗
            </a>
          </dd>
        </div>
      ))}
    </dl>
  )
}

function History({ job }: { job: JobFields }) {
  const { clock, zone } = useApp()
  const [isLinear, setLinear] = useState(false)
  if (job.timeline.length === 0) return null
  const shown = jobTimeline(job, clock.now.value, zone.value, !isLinear)
  return (
    <section class="card">
      <div class="card-head">
        <h2>Time line</h2>
        <button
          type="button"
          class="link-button faint end"
          aria-pressed={isLinear}
          onClick={() => setLinear(!isLinear)}
        >
          {isLinear ? 'Fold the gaps' : 'To scale'}
        </button>
      </div>
      <Timeline shown={shown} label="Time line of the job" />
    </section>
  )
}

function WhoDidWhat({ job }: { job: JobFields }) {
  if (job.flags.length === 0) return null
  return (
    <section class="card">
      <div class="card-head">
        <h2>Who did what</h2>
      </div>
      <ul class="card-body log">
        {job.flags.map(({ at, verb, actor, before, after, reason }) => (
          <li key={`${at}${verb}`}>
            <span class="faint">
              <When at={at} />
            </span>
            <span>
              <b class="strong">{actor}</b> {verb}
              {before === null || after === null ? '' : `: ${before} → ${after}`}
              {reason === null ? '' : `, ${reason}`}
            </span>
          </li>
        ))}
      </ul>
    </section>
  )
}

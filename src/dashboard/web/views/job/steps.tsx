import { useState } from 'preact/hooks'
import type { JobFields, StepRow } from '../../../protocol.js'
import { useApp } from '../../app-context.js'
import { JsonTree } from '../../parts/json-tree.js'
import { When } from '../../parts/time.js'
import { Timeline } from '../../parts/timeline.js'
import { jobHref } from '../../route.js'
import { ErrorText } from './attempts.js'
import { errorLines, waitingText } from './computed.js'
import { stepTimeline } from './timeline.js'

/** The steps of a workflow as a waterfall; a click shows what a step took and gave. */
export function Steps({ job, steps }: { job: JobFields; steps: readonly StepRow[] }) {
  const { clock, zone } = useApp()
  const [isLinear, setLinear] = useState(false)
  const [open, setOpen] = useState<string | undefined>(undefined)
  const chosen = steps.find(({ address }) => address === open)
  return (
    <section class="card">
      <div class="card-head">
        <h2>Steps</h2>
        <Waiting job={job} />
        <button
          type="button"
          class="link-button faint end"
          aria-pressed={isLinear}
          onClick={() => setLinear(!isLinear)}
        >
          {isLinear ? 'Fold the gaps' : 'To scale'}
        </button>
      </div>
      {job.workflow?.warnings.map((text) => (
        <p key={text} class="strip warn">
          {text}
        </p>
      ))}
      {steps.length === 0 ? (
        <p class="card-body quiet">No step has begun.</p>
      ) : (
        <Timeline
          shown={stepTimeline(steps, job, clock.now.value, zone.value, !isLinear, open)}
          label="Steps of the workflow"
          onLane={(key) => setOpen(open === key ? undefined : key)}
        />
      )}
      {chosen === undefined ? null : <StepDetail step={chosen} />}
    </section>
  )
}

function Waiting({ job }: { job: JobFields }) {
  const waiting = job.workflow?.waitingFor ?? []
  return (
    <>
      {waiting.map(({ address, kind, name, event, until }) => (
        <span key={address} class="quiet">
          {waitingText({ kind, name, event })}
          {until === null ? null : (
            <>
              {' '}
              until <When at={until} />
            </>
          )}
        </span>
      ))}
    </>
  )
}

function StepDetail({ step }: { step: StepRow }) {
  return (
    <div class="card-body step-detail">
      <p>
        <b class="strong">{step.name === '' ? step.kind : step.name}</b> <span class="mono quiet">{step.address}</span>
        {step.child === null ? null : <a href={jobHref(step.child)}> the job it called</a>}
      </p>
      {step.unknown ? <p>It was cancelled before it returned: whether it acted is not known.</p> : null}
      {step.error === null ? null : <ErrorText error={errorLines(step.error)} isOpen />}
      {step.result === null ? null : <JsonTree shown={step.result} />}
      {step.log.length === 0 ? null : <pre class="log-text">{step.log.join('\n')}</pre>}
    </div>
  )
}

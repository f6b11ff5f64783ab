import type { JobFields, JobPart } from '../../../protocol.js'
import { useApp } from '../../app-context.js'
import { CopyButton } from '../../parts/copy.js'
import { JsonTree } from '../../parts/json-tree.js'
import { usePart } from './use-part.js'

/** Payload, result and what was captured: read when the page is open, 64 KiB at first. */
export function Values({ job }: { job: JobFields }) {
  return (
    <div class="columns-2">
      <ValueCard job={job} part="payload" title="Payload" missing="The payload is not readable." />
      {job.state === 'done' ? (
        <ValueCard job={job} part="result" title="Result" missing="It returned nothing." />
      ) : (
        <section class="card">
          <div class="card-head">
            <h2>Result</h2>
          </div>
          <p class="card-body quiet">None yet.</p>
        </section>
      )}
    </div>
  )
}

type ValuePart = Extract<JobPart, 'payload' | 'result'>

function ValueCard({ job, part, title, missing }: { job: JobFields; part: ValuePart; title: string; missing: string }) {
  const { session } = useApp()
  const { answer, problem, readAll } = usePart(job.id, part, job.state)
  return (
    <section class="card">
      <div class="card-head">
        <h2>{title}</h2>
        {job.encrypted ? <span class="badge">encrypted</span> : null}
        <span class="end buttons">
          {answer?.isCut ? (
            <button type="button" class="link-button" onClick={readAll}>
              Show all
            </button>
          ) : null}
          {answer === undefined || session.role === 'viewer' ? null : (
            <CopyButton label="Copy" text={() => answer.text} />
          )}
        </span>
      </div>
      <div class="card-body">
        {problem === undefined ? null : <p class="quiet">{problem || missing}</p>}
        {answer === undefined ? null : <JsonTree shown={answer} />}
      </div>
    </section>
  )
}

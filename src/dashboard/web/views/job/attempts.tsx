import { useState } from 'preact/hooks'
import type { JobFields } from '../../../protocol.js'
import { CopyButton } from '../../parts/copy.js'
import { Mark } from '../../parts/state.js'
import { When } from '../../parts/time.js'
import { attemptLines } from './computed.js'
import type { AttemptLine, ErrorLines } from './computed.js'
import { usePart } from './use-part.js'

/** The attempts, newest first: end, worker, error with its stack, log. */
export function Attempts({ job }: { job: JobFields }) {
  const lines = attemptLines(job)
  if (lines.length === 0) return null
  return (
    <section class="card">
      <div class="card-head">
        <h2>Attempts</h2>
      </div>
      {lines.map((line, i) => (
        <Attempt key={line.number} line={line} job={job} isFirst={i === 0} />
      ))}
    </section>
  )
}

function Attempt({ line, job, isFirst }: { line: AttemptLine; job: JobFields; isFirst: boolean }) {
  const [isLogOpen, setLogOpen] = useState(false)
  const isRunning = line.mark === 'running'
  return (
    <div class="attempt">
      <div class="attempt-head">
        <span class="attempt-number">{line.number}</span>
        <Mark name={line.mark} word={line.end} />
        <span class="quiet">
          <When at={line.startedAt} />
        </span>
        {isRunning ? null : <span>{line.took}</span>}
        <span class="quiet cut">{line.worker}</span>
        {line.logLines === 0 ? null : (
          <button type="button" class="link-button" aria-expanded={isLogOpen} onClick={() => setLogOpen(!isLogOpen)}>
            log ({line.logLines})
          </button>
        )}
      </div>
      {line.error === undefined ? null : <ErrorText error={line.error} isOpen={isFirst} />}
      {isRunning && job.logTail.length > 0 ? <pre class="log-text">{job.logTail.join('\n')}</pre> : null}
      {isLogOpen ? <Log id={job.id} attempt={line.number} /> : null}
    </div>
  )
}

export function ErrorText({ error, isOpen }: { error: ErrorLines; isOpen: boolean }) {
  const [isWhole, setWhole] = useState(false)
  const { head, code, frames, folded, causes } = error
  return (
    <details class="error" open={isOpen}>
      <summary>
        <span class="ink-failed break">{head}</span> {code === '' ? null : <span class="badge">{code}</span>}
      </summary>
      <pre class="stack">
        {frames.map(({ text, isOurs }, i) => (
          <span key={i} class={isOurs ? 'strong' : 'quiet'}>
            {text}
          </span>
        ))}
        {isWhole
          ? folded.map((text, i) => (
              <span key={`f${i}`} class="faint">
                {text}
              </span>
            ))
          : null}
        {causes.map((text) => (
          <span key={text}>caused by {text}</span>
        ))}
      </pre>
      <div class="buttons">
        {folded.length === 0 ? null : (
          <button type="button" class="link-button faint" onClick={() => setWhole(!isWhole)}>
            {isWhole ? 'Fold the frames of packages' : `${folded.length} more of packages and Node`}
          </button>
        )}
        <CopyButton
          label="Copy"
          text={() => [head, ...frames.map(({ text }) => `    ${text}`), ...folded].join('\n')}
        />
      </div>
    </details>
  )
}

function Log({ id, attempt }: { id: string; attempt: number }) {
  const { answer, problem } = usePart(id, 'log', String(attempt))
  const lines = answer?.attempts.find(({ number }) => number === attempt)?.lines ?? []
  if (problem !== undefined) return <p class="ink-failed">{problem}</p>
  return <pre class="log-text">{answer === undefined ? 'Reading the log.' : lines.join('\n')}</pre>
}

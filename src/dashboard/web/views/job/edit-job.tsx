import { useState } from 'preact/hooks'
import { STATES_OF } from '../../../protocol.js'
import type { JobFields } from '../../../protocol.js'
import { useApp } from '../../app-context.js'
import { Dialog } from '../../parts/dialog.js'
import { changedArguments, editableText } from './edit-arguments.js'
import { usePart } from './use-part.js'

/** Edit a job that is not running: priority, due time, payload. Only what was changed is sent. */
export function EditJob({ job }: { job: JobFields }) {
  const { actions } = useApp()
  const [isOpen, setOpen] = useState(false)
  const isFit = STATES_OF['job.edit'].includes(job.state)
  const refused = actions.refusal('job.edit') ?? (isFit ? undefined : `A ${job.state} job cannot be edited.`)
  return (
    <>
      <button
        type="button"
        class="button"
        aria-disabled={refused !== undefined}
        title={refused}
        onClick={() => setOpen(refused === undefined)}
      >
        Edit
      </button>
      {isOpen ? <EditDialog job={job} onClose={() => setOpen(false)} /> : null}
    </>
  )
}

function EditDialog({ job, onClose }: { job: JobFields; onClose: () => void }) {
  const { actions } = useApp()
  const [priority, setPriority] = useState(String(job.priority))
  const [delay, setDelay] = useState('')
  const stored = editableText(usePart(job.id, 'payload', job.state).answer)
  const [typed, setPayload] = useState<string | undefined>(undefined)
  const shown = typed ?? stored
  const payload = shown === stored ? '' : shown
  const { args, lines, problem } = changedArguments(job, { priority, delay, payload }, useApp().clock.now.peek())
  const isReady = problem === undefined && lines.length > 0
  const save = (): void => {
    if (!isReady) return
    onClose()
    void actions.act({ verb: 'job.edit', target: job.id, expect: job.state, args })
  }
  return (
    <Dialog title={`Edit ${job.job}`} onClose={onClose}>
      <label class="labelled">
        <span>Priority</span>
        <input
          class="field"
          inputMode="numeric"
          value={priority}
          onInput={({ currentTarget }) => setPriority(currentTarget.value)}
        />
      </label>
      <label class="labelled">
        <span>Due in minutes from now (empty: as it is)</span>
        <input
          class="field"
          inputMode="numeric"
          value={delay}
          onInput={({ currentTarget }) => setDelay(currentTarget.value)}
        />
      </label>
      <label class="labelled">
        <span>Payload as JSON (empty or unchanged: as it is)</span>
        <textarea
          class="field mono"
          rows={6}
          value={shown}
          onInput={({ currentTarget }) => setPayload(currentTarget.value)}
        />
      </label>
      <p class={problem === undefined ? 'quiet' : 'ink-failed'} role="status">
        {problem ?? (lines.length === 0 ? 'Nothing is changed yet.' : lines.join(' · '))}
      </p>
      <div class="dialog-end">
        <button type="button" class="button" onClick={onClose}>
          Keep it as it is
        </button>
        <button type="button" class={`button${isReady ? ' primary' : ''}`} aria-disabled={!isReady} onClick={save}>
          Save
        </button>
      </div>
    </Dialog>
  )
}

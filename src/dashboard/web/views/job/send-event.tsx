import { useState } from 'preact/hooks'
import type { JobFields } from '../../../protocol.js'
import { useApp } from '../../app-context.js'
import { Dialog } from '../../parts/dialog.js'
import { jsonProblem } from './edit-arguments.js'

/** Sends the event that a workflow waits for. */
export function SendEvent({ job, event }: { job: JobFields; event: string }) {
  const { actions } = useApp()
  const [isOpen, setOpen] = useState(false)
  const [payload, setPayload] = useState('{}')
  const refused = actions.refusal('job.send')
  const problem = jsonProblem(payload)
  const send = (): void => {
    if (problem !== undefined) return
    setOpen(false)
    void actions.act({ verb: 'job.send', target: job.id, expect: job.state, args: { event, payload } })
  }
  return (
    <>
      <button
        type="button"
        class="button primary"
        aria-disabled={refused !== undefined}
        title={refused}
        onClick={() => setOpen(refused === undefined)}
      >
        Send {event}
      </button>
      {isOpen ? (
        <Dialog title={`Send ${event} to ${job.job}`} onClose={() => setOpen(false)}>
          <label class="labelled">
            <span>Payload as JSON</span>
            <textarea
              class="field mono"
              rows={6}
              value={payload}
              onInput={({ currentTarget }) => setPayload(currentTarget.value)}
            />
          </label>
          <p class="ink-failed" role="status">
            {problem ?? ''}
          </p>
          <div class="dialog-end">
            <button type="button" class="button" onClick={() => setOpen(false)}>
              Send nothing
            </button>
            <button
              type="button"
              class={`button${problem === undefined ? ' primary' : ''}`}
              aria-disabled={problem !== undefined}
              onClick={send}
            >
              Send {event}
            </button>
          </div>
        </Dialog>
      ) : null}
    </>
  )
}

import { useState } from 'preact/hooks'
import type { PreviewAnswer } from '../../../protocol.js'
import { useApp } from '../../app-context.js'
import { Dialog } from '../dialog.js'
import { State } from '../state.js'
import { exampleText, previewLines } from './bulk-lines.js'
import type { PreviewLines } from './bulk-lines.js'

interface BulkPreviewProps {
  readonly preview: PreviewAnswer
  readonly onClose: () => void
  readonly onStart: (id: string) => void
}

/** What a bulk will do, before it does it. Above 1,000 jobs the count is typed; the focus begins on the button that changes nothing. */
export function BulkPreview({ preview, onClose, onStart }: BulkPreviewProps) {
  const { actions, zone } = useApp()
  const [typed, setTyped] = useState('')
  const [reason, setReason] = useState('')
  const lines = previewLines(preview, zone.value)
  const isReady = lines.count > 0 && (!preview.mustType || typed.trim() === String(lines.count))
  const start = async (): Promise<void> => {
    if (!isReady) return
    const answer = await actions.act({
      verb: preview.verb,
      target: preview.id,
      reason: reason === '' ? undefined : reason,
    })
    if (answer?.id) onStart(answer.id)
    else onClose()
  }
  return (
    <Dialog title={lines.title} onClose={onClose}>
      <p>{lines.states}</p>
      <Examples preview={preview} />
      <p class="quiet">{lines.scope}</p>
      {preview.mustType ? <Typed count={lines.count} typed={typed} onTyped={setTyped} /> : null}
      <label class="labelled">
        <span class="quiet">Reason, for the audit trail (optional)</span>
        <input
          class="field"
          maxLength={500}
          value={reason}
          onInput={({ currentTarget }) => setReason(currentTarget.value)}
        />
      </label>
      <div class="dialog-end">
        <button type="button" class="button" autoFocus onClick={onClose}>
          Change nothing
        </button>
        <button
          type="button"
          class={confirmClass(lines, isReady)}
          aria-disabled={!isReady}
          onClick={() => void start()}
        >
          {lines.confirm}
        </button>
      </div>
    </Dialog>
  )
}

function Examples({ preview }: { preview: PreviewAnswer }) {
  return (
    <ul class="examples">
      {preview.examples.map((row) => (
        <li key={row.id}>
          <State state={row.state} />
          <a class="cut" href={`#/job/${row.id}`} title={exampleText(row)}>
            {exampleText(row)}
          </a>
        </li>
      ))}
    </ul>
  )
}

function Typed({ count, typed, onTyped }: { count: number; typed: string; onTyped: (text: string) => void }) {
  return (
    <label class="labelled">
      <span>Type {count} to confirm</span>
      <input
        class="field"
        inputMode="numeric"
        value={typed}
        onInput={({ currentTarget }) => onTyped(currentTarget.value)}
      />
    </label>
  )
}

function confirmClass({ isDangerous }: PreviewLines, isReady: boolean): string {
  if (!isReady) return 'button'
  return isDangerous ? 'button danger' : 'button primary'
}

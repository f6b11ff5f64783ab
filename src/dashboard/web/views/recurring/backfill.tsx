import { useState } from 'preact/hooks'
import { useApp } from '../../app-context.js'
import { Dialog } from '../../parts/dialog.js'
import { backfillArguments } from './computed.js'

/** Enqueues the ticks of a past span: two instants, at most 1,000 ticks. */
export function Backfill({ id }: { id: string }) {
  const { actions } = useApp()
  const [isOpen, setOpen] = useState(false)
  const refused = actions.refusal('recurring.backfill')
  return (
    <>
      <button
        type="button"
        class="button"
        aria-disabled={refused !== undefined}
        title={refused}
        onClick={() => setOpen(refused === undefined)}
      >
        Backfill…
      </button>
      {isOpen ? <BackfillDialog id={id} onClose={() => setOpen(false)} /> : null}
    </>
  )
}

function BackfillDialog({ id, onClose }: { id: string; onClose: () => void }) {
  const { actions } = useApp()
  const [from, setFrom] = useState('')
  const [to, setTo] = useState('')
  const args = backfillArguments(from, to)
  const isReady = args.problem === undefined
  const confirm = (): void => {
    if (!isReady) return
    onClose()
    void actions.act({ verb: 'recurring.backfill', target: id, args: { from: args.from, to: args.to } })
  }
  return (
    <Dialog title={`Backfill ${id}`} onClose={onClose}>
      <p>
        Each tick of its rule between the two instants becomes a job now, at most 1,000. A tick that already has a job
        is not repeated.
      </p>
      <Instant name="From" value={from} onValue={setFrom} />
      <Instant name="To" value={to} onValue={setTo} />
      <p class="quiet" role="status">
        {args.problem ?? ''}
      </p>
      <div class="dialog-end">
        <button type="button" class="button" autoFocus onClick={onClose}>
          Change nothing
        </button>
        <button type="button" class={`button${isReady ? ' danger' : ''}`} aria-disabled={!isReady} onClick={confirm}>
          Backfill
        </button>
      </div>
    </Dialog>
  )
}

function Instant({ name, value, onValue }: { name: string; value: string; onValue: (value: string) => void }) {
  return (
    <label class="labelled">
      <span>{name}</span>
      <input
        class="field"
        type="datetime-local"
        value={value}
        onInput={({ currentTarget }) => onValue(currentTarget.value)}
      />
    </label>
  )
}

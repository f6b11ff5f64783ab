import { useState } from 'preact/hooks'
import { isDestructive } from '../../../protocol.js'
import type { Wish } from '../../act.js'
import { useApp } from '../../app-context.js'
import { Icon } from '../../icons.js'
import type { IconName } from '../../icons.js'
import { Dialog } from '../dialog.js'

export interface ActProps {
  readonly wish: Wish
  readonly label: string
  /** Without words, in rows. */
  readonly icon?: IconName
  readonly isPrimary?: boolean
  /** Why it cannot be used in this state; it is drawn all the same. */
  readonly unavailable?: string | undefined
  /** What the dialog names in its title. */
  readonly subject?: string | undefined
  /** The question of the dialog, for verbs that ask first: what will happen to what. */
  readonly question?: string
  /** The key that presses it in the focused row. */
  readonly shortcut?: 'retry' | 'pause' | undefined
}

/** A button that sends a verb. It says so until the server has answered; the page changes only when the stream says so. */
export function Act({ wish, label, icon, isPrimary, unavailable, subject, question, shortcut }: ActProps) {
  const { actions } = useApp()
  const [isAsking, setAsking] = useState(false)
  const refused = actions.refusal(wish.verb) ?? unavailable
  const isPending = actions.isPending(wish)
  const click = (): void => {
    if (refused !== undefined || isPending) return
    if (isDestructive(wish.verb) && question !== undefined) setAsking(true)
    else void actions.act(wish)
  }
  return (
    <>
      <button
        type="button"
        class={`button${isPrimary && refused === undefined ? ' primary' : ''}${icon === undefined ? '' : ' square'}`}
        aria-label={icon === undefined ? undefined : label}
        aria-disabled={refused !== undefined || isPending}
        title={refused ?? (icon === undefined ? undefined : label)}
        data-key={shortcut}
        onClick={click}
      >
        {icon === undefined ? isPending ? `${label}…` : label : <Icon name={icon} size={14} />}
      </button>
      {isAsking ? (
        <Confirm
          wish={wish}
          label={label}
          subject={subject}
          question={question ?? ''}
          onClose={() => setAsking(false)}
        />
      ) : null}
    </>
  )
}

interface ConfirmProps {
  readonly wish: Wish
  readonly label: string
  readonly subject?: string | undefined
  readonly question: string
  readonly onClose: () => void
}

/** One dialog that names the subject and the consequence. Enter never confirms: the focus begins on Cancel. */
export function Confirm({ wish, label, subject, question, onClose }: ConfirmProps) {
  const { actions } = useApp()
  const [reason, setReason] = useState('')
  const confirm = (): void => {
    onClose()
    void actions.act({ ...wish, reason: reason === '' ? undefined : reason })
  }
  return (
    <Dialog title={subject === undefined ? `${label}?` : `${label} ${subject}?`} onClose={onClose}>
      <p class="break">{question}</p>
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
          Keep it as it is
        </button>
        <button type="button" class="button danger" onClick={confirm}>
          {label}
        </button>
      </div>
    </Dialog>
  )
}

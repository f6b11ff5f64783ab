import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useRef } from 'preact/hooks'
import { Icon } from '../icons.js'

export interface DialogProps {
  readonly title: string
  readonly onClose: () => void
  readonly isDrawer?: boolean
  readonly children: ComponentChildren
}

/** A modal dialog. The browser keeps the focus inside and gives it back; `Esc` closes. */
export function Dialog({ title, onClose, isDrawer, children }: DialogProps) {
  const ref = useRef<HTMLDialogElement>(null)
  useLayoutEffect(() => {
    const dialog = ref.current
    dialog?.showModal()
    // Closed before it is removed: only then the browser gives the focus back.
    return () => dialog?.close()
  }, [])
  return (
    <dialog
      ref={ref}
      class={isDrawer ? 'drawer' : ''}
      aria-labelledby="dialog-title"
      onCancel={(event) => {
        event.preventDefault()
        onClose()
      }}
      onClick={(event) => {
        if (event.target === ref.current) onClose()
      }}
    >
      <div class="dialog-body">
        <div class="card-top">
          <h2 id="dialog-title">{title}</h2>
          <button type="button" class="button plain square" aria-label="Close" onClick={onClose}>
            <Icon name="close" />
          </button>
        </div>
        {children}
      </div>
    </dialog>
  )
}

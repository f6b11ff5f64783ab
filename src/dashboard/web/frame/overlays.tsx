import { useEffect, useState } from 'preact/hooks'
import type { EnqueueRow, QueueRow } from '../../protocol.js'
import { useApp } from '../app-context.js'
import { KEY_HELP } from '../keys.js'
import { Dialog } from '../parts/dialog.js'
import { jumpChoices } from './jump.js'

/** The overlays of the frame: keyboard help and the jump box. */
export function Overlays() {
  const { overlay } = useApp()
  const close = (): void => void (overlay.value = 'none')
  if (overlay.value === 'help') return <Help onClose={close} />
  if (overlay.value === 'jump') return <Jump onClose={close} />
  return null
}

function Help({ onClose }: { onClose: () => void }) {
  return (
    <Dialog title="Keyboard" onClose={onClose}>
      <dl class="key-help">
        {KEY_HELP.map(([keys, does]) => (
          <div key={keys}>
            <dt>
              {keys.split(' ').map((key) => (
                <kbd key={key} class="kbd">
                  {key}
                </kbd>
              ))}
            </dt>
            <dd>{does}</dd>
          </div>
        ))}
      </dl>
      <p class="faint">No key acts while you type. Single-key shortcuts can be switched off in the display menu.</p>
    </Dialog>
  )
}

function Jump({ onClose }: { onClose: () => void }) {
  const { router, live } = useApp()
  const [text, setText] = useState('')
  const [at, setAt] = useState(0)
  useEffect(() => live.also('queues'), [])
  const queues = Object.values((live.held('queues').value.snapshot?.rows ?? {}) as Record<string, QueueRow>)
  const jobs = Object.values((live.held('enqueue').value.snapshot?.rows ?? {}) as Record<string, EnqueueRow>)
  const choices = jumpChoices(text, queues, jobs)
  const go = (href: string | undefined): void => {
    onClose()
    if (href !== undefined) router.go(href)
  }
  const press = (event: KeyboardEvent): void => {
    if (event.key === 'Enter') go(choices[at]?.href)
    const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0
    if (step !== 0) setAt(Math.min(choices.length - 1, Math.max(0, at + step)))
  }
  return (
    <Dialog title="Jump to" onClose={onClose}>
      <input
        class="field"
        autoFocus
        aria-label="A queue, a job, an id, a page"
        placeholder="A queue, a job, an id, a page"
        value={text}
        onKeyDown={press}
        onInput={({ currentTarget }) => {
          setText(currentTarget.value)
          setAt(0)
        }}
      />
      <ul class="jump">
        {choices.map(({ href, label, kind }, i) => (
          <li key={href}>
            <a href={href} aria-current={i === at} onClick={onClose}>
              <span class="cut">{label}</span>
              <span class="faint">{kind}</span>
            </a>
          </li>
        ))}
      </ul>
    </Dialog>
  )
}

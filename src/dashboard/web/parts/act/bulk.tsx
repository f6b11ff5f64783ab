import type { ComponentChildren } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import type { BulkFields, PreviewAnswer, PreviewRequest } from '../../../protocol.js'
import { useApp } from '../../app-context.js'
import { sentence } from '../../format/text.js'
import { Icon } from '../../icons.js'
import { useTopic } from '../../use-topic.js'
import { bulkLine } from './bulk-lines.js'
import { BulkPreview } from './bulk-preview.js'
import { Dialog } from '../dialog.js'
import { Menu } from '../menu.js'

export interface BulkProps {
  readonly verb: PreviewRequest['verb']
  readonly of: PreviewRequest['of']
  readonly label: string
  /** What a screen reader says, where the label is short. */
  readonly name?: string
  readonly shortcut?: 'retry'
}

/** A button that acts on many jobs: first a preview of exactly what it will do, then the progress. */
export function BulkButton({ verb, of, label, name, shortcut }: BulkProps) {
  const { actions } = useApp()
  const { ask, dialogs } = useBulk(of)
  const refused = actions.refusal(verb)
  return (
    <>
      <button
        type="button"
        class="button"
        aria-label={name}
        title={refused}
        aria-disabled={refused !== undefined}
        data-key={shortcut}
        onClick={() => ask(verb)}
      >
        {label}
      </button>
      {dialogs}
    </>
  )
}

const VERBS: readonly BulkProps['verb'][] = ['bulk.retry', 'bulk.pause', 'bulk.resume', 'bulk.cancel', 'bulk.delete']

/** What can be done with many jobs, as a menu. */
export function BulkMenu({ of, label, subject }: { of: BulkProps['of']; label: string; subject: string }) {
  const { actions } = useApp()
  const { ask, dialogs } = useBulk(of)
  const items = VERBS.map((verb) => ({
    label: `${sentence(verb.replace('bulk.', ''))} ${subject}…`,
    unavailable: actions.refusal(verb),
    onClick: () => ask(verb),
  }))
  return (
    <>
      <Menu label={`Actions on ${subject}`} items={items} isSquare={false}>
        {label} <Icon name="down" size={12} />
      </Menu>
      {dialogs}
    </>
  )
}

interface BulkSteps {
  readonly ask: (verb: BulkProps['verb']) => void
  readonly dialogs: ComponentChildren
}

/** The steps of a bulk: asked, previewed, running. */
function useBulk(of: BulkProps['of']): BulkSteps {
  const { api, actions } = useApp()
  const [preview, setPreview] = useState<PreviewAnswer | undefined>(undefined)
  const [bulk, setBulk] = useState<string | undefined>(undefined)
  const ask = (verb: BulkProps['verb']): void => {
    if (actions.refusal(verb) !== undefined) return
    api
      .post<PreviewAnswer>('preview', { verb, of })
      .then(setPreview, (error: Error) => actions.say('bad', error.message))
  }
  const start = (id: string): void => {
    setPreview(undefined)
    setBulk(id)
  }
  const dialogs = (
    <>
      {preview === undefined ? null : (
        <BulkPreview preview={preview} onClose={() => setPreview(undefined)} onStart={start} />
      )}
      {bulk === undefined ? null : <Progress id={bulk} onClose={() => setBulk(undefined)} />}
    </>
  )
  return { ask, dialogs }
}

function Progress({ id, onClose }: { id: string; onClose: () => void }) {
  const { actions, live } = useApp()
  const topic = `bulk:${id}`
  useEffect(() => live.also(topic), [topic])
  const { snapshot } = useTopic<'bulk'>(topic)
  return (
    <Dialog title="Progress" onClose={onClose}>
      {snapshot === undefined ? (
        <p class="quiet">Waiting for the first page.</p>
      ) : (
        <BulkProgress fields={snapshot.fields} />
      )}
      <div class="dialog-end">
        <button
          type="button"
          class="button"
          aria-disabled={snapshot?.fields.state !== 'running'}
          onClick={() => void actions.act({ verb: 'bulk.stop', target: id })}
        >
          Stop
        </button>
        <button type="button" class="button" onClick={onClose}>
          Close
        </button>
      </div>
    </Dialog>
  )
}

function BulkProgress({ fields }: { fields: BulkFields }) {
  const { text, done, total } = bulkLine(fields)
  return (
    <>
      <progress value={done} max={total} />
      <p role="status">{text}</p>
      {fields.error === null ? null : <p class="ink-failed">{fields.error}</p>}
    </>
  )
}

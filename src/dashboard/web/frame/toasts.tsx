import { useApp } from '../app-context.js'
import { Icon } from '../icons.js'
import { Glyph } from '../parts/state.js'

/** The results of the user's own actions: said aloud, with a link, and with the way back where there is one. */
export function Toasts() {
  const { actions } = useApp()
  return (
    <div class="toasts" role="status" aria-live="polite">
      {actions.toasts.value.map(({ id, kind, text, link, undo }) => (
        <div key={id} class="toast">
          <Glyph name={kind === 'good' ? 'done' : 'warn'} />
          <span class="break">{text}</span>
          {link === null ? null : <a href={link}>Show</a>}
          {undo === undefined ? null : (
            <button type="button" class="link-button" onClick={undo}>
              Undo
            </button>
          )}
          <button type="button" class="button plain square" aria-label="Close" onClick={() => actions.close(id)}>
            <Icon name="close" size={12} />
          </button>
        </div>
      ))}
    </div>
  )
}

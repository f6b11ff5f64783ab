import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useRef, useState } from 'preact/hooks'
import { Icon } from '../icons.js'

export interface MenuItem {
  readonly label: string
  readonly hint?: string | undefined
  readonly href?: string | undefined
  readonly isCurrent?: boolean | undefined
  /** Why it cannot be used now; it is shown all the same. */
  readonly unavailable?: string | undefined
  readonly onClick?: () => void
}

/** A button that opens a list of actions or links. Arrow keys walk it, `Esc` closes it and gives the focus back. */
export function Menu({
  label,
  items,
  children,
  isSquare = true,
}: {
  label: string
  items: readonly MenuItem[]
  children?: ComponentChildren
  isSquare?: boolean
}) {
  const [isOpen, setOpen] = useState(false)
  const box = useRef<HTMLDivElement>(null)
  const close = (): void => {
    setOpen(false)
    box.current?.querySelector('button')?.focus()
  }
  useLayoutEffect(() => {
    if (!isOpen) return undefined
    placeList(box.current)
    return closeOutside(box.current, () => setOpen(false))
  }, [isOpen])
  return (
    <div class="menu" ref={box} onKeyDown={(event) => walk(event, close)}>
      <button
        type="button"
        class={`button plain${isSquare ? ' square' : ''}`}
        data-menu
        aria-haspopup="menu"
        aria-expanded={isOpen}
        aria-label={children === undefined ? label : undefined}
        title={label}
        onClick={() => setOpen(!isOpen)}
      >
        {children ?? <Icon name="more" />}
      </button>
      {isOpen ? (
        <div class="menu-list" role="menu" popover="manual">
          {items.map((item) => (
            <Item key={item.label} item={item} onDone={close} />
          ))}
        </div>
      ) : null}
    </div>
  )
}

function Item({ item, onDone }: { item: MenuItem; onDone: () => void }) {
  const { label, hint, href, isCurrent, unavailable, onClick } = item
  const shown = [
    label,
    hint === undefined ? null : (
      <span key="hint" class="end">
        {hint}
      </span>
    ),
  ]
  if (href !== undefined)
    return (
      <a role="menuitem" href={href} aria-current={isCurrent ? 'page' : undefined} onClick={onDone}>
        {shown}
      </a>
    )
  return (
    <button
      type="button"
      role={isCurrent === undefined ? 'menuitem' : 'menuitemradio'}
      aria-checked={isCurrent}
      aria-disabled={unavailable !== undefined}
      title={unavailable}
      class={unavailable === undefined ? '' : 'faint'}
      onClick={() => {
        if (unavailable !== undefined) return
        onDone()
        onClick?.()
      }}
    >
      {isCurrent === undefined ? null : <span class="check">{isCurrent ? '✓' : ''}</span>}
      {shown}
    </button>
  )
}

const MARGIN = 8

/** Puts the list under its button, or above it where the window ends; in the top layer, so that no table cuts it. */
function placeList(box: HTMLElement | null): void {
  const list = box?.querySelector<HTMLElement>('.menu-list')
  const button = box?.querySelector('button')?.getBoundingClientRect()
  if (!list || !button) return
  list.showPopover()
  const { offsetWidth, offsetHeight } = list
  const below = button.bottom + 4
  const isAbove = below + offsetHeight > innerHeight && button.top > offsetHeight
  list.style.top = `${isAbove ? button.top - offsetHeight - 4 : Math.max(MARGIN, Math.min(below, innerHeight - offsetHeight - MARGIN))}px`
  list.style.left = `${Math.max(MARGIN, Math.min(button.right - offsetWidth, innerWidth - offsetWidth - MARGIN))}px`
  list.querySelector<HTMLElement>('[role^=menuitem]')?.focus({ preventScroll: true })
}

function walk(event: KeyboardEvent, close: () => void): void {
  if (event.key === 'Escape') {
    event.stopPropagation()
    return close()
  }
  const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0
  if (step === 0) return
  event.preventDefault()
  const items = [...(event.currentTarget as HTMLElement).querySelectorAll<HTMLElement>('[role^=menuitem]')]
  const at = items.indexOf(document.activeElement as HTMLElement)
  items[(at + step + items.length) % items.length]?.focus()
}

function closeOutside(box: HTMLElement | null, close: () => void): () => void {
  const listen = (event: Event): void => {
    if (!box?.contains(event.target as Node)) close()
  }
  const scroll = (event: Event): void => {
    if (!box?.contains(event.target as Node)) close()
  }
  document.addEventListener('pointerdown', listen)
  document.addEventListener('scroll', scroll, true)
  return () => {
    document.removeEventListener('pointerdown', listen)
    document.removeEventListener('scroll', scroll, true)
  }
}

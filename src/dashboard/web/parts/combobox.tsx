import { useState } from 'preact/hooks'

export interface Choice {
  readonly label: string
  readonly hint: string
}

export interface ComboboxProps {
  readonly label: string
  readonly placeholder: string
  readonly text: string
  readonly choices: readonly Choice[]
  readonly onText: (text: string, caret: number) => void
  readonly onChoose: (index: number) => void
  readonly onSubmit: () => void
  /** The field was entered: completions of what is there are welcome. */
  readonly onEnter: () => void
}

/** A text field with a list of completions: ↑ ↓ walk it, Tab or Enter takes one, Esc closes it. */
export function Combobox(props: ComboboxProps) {
  const { label, placeholder, text, choices, onText, onChoose } = props
  const [isOpen, setOpen] = useState(false)
  const [at, setAt] = useState(-1)
  const [hasTyped, setTyped] = useState(false)
  const shown = isOpen ? choices : []
  const take = (index: number): void => {
    onChoose(index)
    setAt(-1)
    setTyped(false)
  }
  const type = ({ currentTarget }: { currentTarget: HTMLInputElement }): void => {
    setOpen(true)
    setTyped(true)
    setAt(-1)
    onText(currentTarget.value, currentTarget.selectionStart ?? currentTarget.value.length)
  }
  return (
    <>
      <input
        class="field"
        type="text"
        role="combobox"
        data-search
        aria-label={label}
        aria-expanded={shown.length > 0}
        aria-controls="completions"
        aria-activedescendant={at >= 0 && shown.length > 0 ? `completion-${at}` : undefined}
        autocomplete="off"
        spellcheck={false}
        placeholder={placeholder}
        title={text}
        value={text}
        onInput={type}
        onKeyDown={(event) => pressIn(event, props, { shown: shown.length, at, hasTyped, setAt, setOpen, take })}
        onFocus={() => {
          props.onEnter()
          setTyped(false)
          setOpen(true)
        }}
        onBlur={() => setTimeout(() => setOpen(false), 150)}
      />
      <Choices label={label} shown={shown} at={at} onTake={take} />
    </>
  )
}

interface ListState {
  readonly shown: number
  readonly at: number
  /** Tab takes the first choice only after a key: else it walks on through the page. */
  readonly hasTyped: boolean
  readonly setAt: (at: number) => void
  readonly setOpen: (isOpen: boolean) => void
  readonly take: (index: number) => void
}

function pressIn(
  event: KeyboardEvent,
  { choices, onSubmit }: ComboboxProps,
  { shown, at, hasTyped, setAt, setOpen, take }: ListState,
): void {
  const move = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0
  const isTaking = shown > 0 && ((event.key === 'Tab' && (hasTyped || at >= 0)) || (event.key === 'Enter' && at >= 0))
  if (event.key === 'Escape') return setOpen(false)
  if (move !== 0 && choices.length > 0) {
    setOpen(true)
    setAt(Math.min(choices.length - 1, Math.max(0, at + move)))
  } else if (isTaking) take(Math.max(0, at))
  else if (event.key === 'Enter') {
    setOpen(false)
    onSubmit()
  } else return
  event.preventDefault()
}

function Choices({
  label,
  shown,
  at,
  onTake,
}: {
  label: string
  shown: readonly Choice[]
  at: number
  onTake: (index: number) => void
}) {
  return (
    <div
      id="completions"
      role="listbox"
      aria-label={label}
      class={`menu-list completions${shown.length === 0 ? ' closed' : ''}`}
    >
      {shown.map(({ label: name, hint }, i) => (
        <div key={name} id={`completion-${i}`} role="option" aria-selected={i === at} onPointerDown={() => onTake(i)}>
          <span class="mono">{name}</span>
          <span class="end">{hint}</span>
        </div>
      ))}
    </div>
  )
}

import { useState } from 'preact/hooks'
import type { Shown, ShownValue } from '../../protocol.js'
import { bytes, plural } from '../format/number.js'
import { visible } from '../format/text.js'

/** How deep a value is open at first. */
const OPEN_DEPTH = 2
/** A long text is shown in part; a click shows all of it. */
const TEXT_SHOWN = 200

/** A value of the app as a tree or as text: keys in stored order, big integers exact, tags as chips. */
export function JsonTree({ shown }: { shown: ShownValue }) {
  const [isText, setText] = useState(false)
  return (
    <div class="json">
      <div class="json-head faint">
        <span>{bytes(shown.bytes)}</span>
        {shown.isCut ? <span>shown in part</span> : null}
        {shown.isRedacted ? <span>parts are hidden from your role</span> : null}
        <button type="button" class="link-button" aria-pressed={isText} onClick={() => setText(!isText)}>
          {isText ? 'Tree' : 'Text'}
        </button>
      </div>
      {isText ? <pre class="break">{visible(shown.text)}</pre> : <Value value={shown.value} depth={0} />}
    </div>
  )
}

function Value({ value, depth }: { value: Shown; depth: number }) {
  if (typeof value === 'string') return <Text text={value} />
  if (value === null || typeof value !== 'object') return <span class="json-literal">{String(value)}</span>
  if (value.is === 'object') return <Entries entries={value.entries} more={value.more} of={value.of} depth={depth} />
  if (value.is === 'list') {
    const entries = value.items.map((item, i) => [String(i), item] as const)
    return (
      <Entries
        entries={entries}
        more={value.more}
        of={value.of ?? (entries.length === 0 ? '[ ]' : undefined)}
        depth={depth}
        isList
      />
    )
  }
  return <Tag tag={value.tag} text={value.text} />
}

function Tag({ tag, text }: { tag: string; text: string }) {
  if (tag === 'redacted') return <span class="json-tag">‹hidden›</span>
  if (tag === 'encrypted') return <span class="json-tag">encrypted with key {text}</span>
  if (text === tag) return <span class="json-tag">{tag}</span>
  return (
    <span class="json-tag-line">
      <span class="json-tag">{tag}</span> {visible(text)}
    </span>
  )
}

function Text({ text }: { text: string }) {
  const [isWhole, setWhole] = useState(false)
  const isLong = text.length > TEXT_SHOWN
  return (
    <span class="json-text break">
      "{visible(isWhole || !isLong ? text : text.slice(0, TEXT_SHOWN))}"
      {isLong && !isWhole ? (
        <button type="button" class="link-button" onClick={() => setWhole(true)}>
          … all {plural(text.length, 'character')}
        </button>
      ) : null}
    </span>
  )
}

interface EntriesProps {
  readonly entries: readonly (readonly [string, Shown])[]
  readonly more: number | undefined
  readonly of: string | undefined
  readonly depth: number
  readonly isList?: boolean
}

function Entries({ entries, more, of, depth, isList }: EntriesProps) {
  const [isOpen, setOpen] = useState(depth < OPEN_DEPTH)
  if (entries.length === 0) return <span class="faint">{of ?? '{ }'}</span>
  const size = plural(entries.length + (more ?? 0), isList ? 'item' : 'key')
  if (!isOpen)
    return (
      <button type="button" class="link-button faint" onClick={() => setOpen(true)}>
        {of === undefined ? '' : `${of} `}
        {size}
      </button>
    )
  return (
    <>
      {of === undefined ? null : <span class="json-tag">{of}</span>}
      <ul class={depth === 0 ? '' : 'json-inner'}>
        {entries.map(([name, value]) => (
          <li key={name}>
            <span class="json-key">{visible(name)}</span> <Value value={value} depth={depth + 1} />
          </li>
        ))}
        {more === undefined ? null : <li class="faint">{more} more are not shown</li>}
      </ul>
    </>
  )
}

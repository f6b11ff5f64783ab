import { useState } from 'preact/hooks'
import { shortId } from '../format/text.js'
import { copyText } from './copy-text.js'

/** An id in mono, cut in the middle; whole in the title, and a click copies it. */
export function Id({ id, whole = false }: { id: string; whole?: boolean }) {
  const [isCopied, setCopied] = useState(false)
  return (
    <button
      type="button"
      class="id mono"
      title={isCopied ? 'Copied' : `${id} · click to copy`}
      onClick={() => void copyText(id).then(() => setCopied(true))}
      onBlur={() => setCopied(false)}
    >
      {whole ? id : shortId(id)}
      <span role="status" class="visually-hidden">
        {isCopied ? 'Copied' : ''}
      </span>
    </button>
  )
}

export function CopyButton({ text, label }: { text: () => string | Promise<string>; label: string }) {
  const [isCopied, setCopied] = useState(false)
  const copy = async (): Promise<void> => {
    await copyText(await text())
    setCopied(true)
  }
  return (
    <button type="button" class="button" onClick={() => void copy()} onBlur={() => setCopied(false)}>
      {isCopied ? 'Copied' : label}
    </button>
  )
}

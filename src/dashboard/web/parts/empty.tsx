import type { ComponentChildren } from 'preact'

/** Empty space always has a sentence, and where code helps, the code. */
export function Empty({ children, code }: { children: ComponentChildren; code?: string }) {
  return (
    <div class="empty">
      <p>{children}</p>
      {code === undefined ? null : <pre>{code}</pre>}
    </div>
  )
}

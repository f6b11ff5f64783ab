import { Fragment, options } from 'preact'
import type { VNode } from 'preact'
import { visible } from './format/text.js'

const NAMES = ['title', 'aria-label'] as const

/**
 * Every text and every name of an element shows its control and bidirectional characters as marked escapes, whichever view
 * draws it: the name of a queue that a client chose could otherwise change how its row reads. What a field holds stays as it is.
 */
export function showControlCharacters(): void {
  const before = options.vnode?.bind(options)
  options.vnode = (vnode) => {
    if (typeof vnode.type === 'string' || vnode.type === Fragment) escapeText(vnode)
    before?.(vnode)
  }
}

function escapeText({ props }: VNode): void {
  const named = props as { children?: unknown; title?: unknown; 'aria-label'?: unknown }
  const { children } = named
  if (typeof children === 'string') named.children = visible(children)
  else if (Array.isArray(children))
    named.children = children.map((child: unknown) => (typeof child === 'string' ? visible(child) : child))
  for (const name of NAMES) {
    const text = named[name]
    if (typeof text === 'string') named[name] = visible(text)
  }
}

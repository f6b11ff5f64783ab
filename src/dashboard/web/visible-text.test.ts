import { h, options } from 'preact'
import { renderToString } from 'preact-render-to-string'
import { afterAll, expect, test } from 'vitest'
import { showControlCharacters } from './visible-text.js'

const before = options.vnode
afterAll(() => {
  if (before === undefined) delete options.vnode
  else options.vnode = before
})

test('names that would turn their row around are shown with marked escapes, and right-to-left text stays', () => {
  showControlCharacters()
  const name = 'gnp.\u202eexe'
  const Row = (p: { readonly name: string }) =>
    h('tr', { title: p.name, 'aria-label': `Pause ${p.name}` }, ['queue ', p.name, h('input', { value: p.name })])
  expect(renderToString(h(Row, { name }))).toBe(
    '<tr title="gnp.\\u202eexe" aria-label="Pause gnp.\\u202eexe">queue gnp.\\u202eexe<input value="gnp.\u202eexe"/></tr>',
  )
  expect(renderToString(h('b', null, 'שלום 🙂'))).toBe('<b>שלום 🙂</b>')
})

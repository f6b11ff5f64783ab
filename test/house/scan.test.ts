import { expect, test } from 'vitest'
import { importsOf } from './imports.js'
import { scan } from './scan.js'
import { toSource } from './source.js'

const words = (text: string): string[] =>
  scan(text)
    .filter(({ kind }) => kind === 'word')
    .map((token) => token.text)

test('comments, strings, templates and regular expressions are not code', () => {
  expect(words(`// one\n/* two */ three('four', "five\\" six", /se\\/ven[/]/g)`)).toEqual(['three'])
  expect(words('const a = `eight ${nine(`ten ${eleven}`)} twelve`')).toEqual(['const', 'a', 'nine', 'eleven'])
})

test('a division is not the start of a regular expression', () => {
  expect(words('a / b / c; (d) / e / f; g++ / h / i; j[0] / k / l')).toEqual('abcdefghijkl'.split(''))
  expect(scan('return /x/g').at(-1)).toMatchObject({ kind: 'regex', text: '/x/g' })
})

test('an apostrophe in JSX text ends with its line', () => {
  expect(words(`const a = <p>it's</p>\nlet b`)).toEqual(expect.arrayContaining(['let', 'b']))
})

test('lines are counted through templates and comments', () => {
  expect(scan('/*\n*/ `\n\n` end').at(-1)).toMatchObject({ text: 'end', line: 4 })
  expect(scan('`\n${\nmiddle}` end').map(({ line }) => line)).toEqual([1, 2, 3, 3, 3])
})

test('an unfinished text is scanned to its end', () => {
  for (const text of ['`a ${b', "'open", '/* open', '`open', '${', '{ (']) expect(() => scan(text)).not.toThrow()
})

test('every form of import is found, with its kind and line', () => {
  const text = `
    import './a.js'
    import b from './b.js'
    import type { C } from './c.js'
    import {
      type D,
    } from './d.js'
    import * as e from './e.js'
    import type * as F from './f.js'
    import type from './g.js'
    export { h } from './h.js'
    export type { I } from './i.js'
    export * from './j.js'
    const k = await import('./k.js')
    let l: import('./l.js').L
    let m: typeof import('./m.js')
    const n = require('./n.js')
    const o = process.getBuiltinModule?.('node:sqlite')
    new Worker(new URL('./p.js', import.meta.url))
  `
  expect(
    importsOf(toSource('src/x.ts', text))
      .map(({ specifier, kind }) => `${specifier} ${kind}`)
      .sort(),
  ).toEqual([
    './a.js value',
    './b.js value',
    './c.js type',
    './d.js value',
    './e.js value',
    './f.js type',
    './g.js value',
    './h.js value',
    './i.js type',
    './j.js value',
    './k.js dynamic',
    './l.js type',
    './m.js type',
    './n.js dynamic',
    './p.js dynamic',
    'node:sqlite dynamic',
  ])
  expect(importsOf(toSource('src/x.ts', text))[3]).toMatchObject({ specifier: './d.js', line: 7 })
})

test('text that only looks like an import is ignored', () => {
  const text = `
    // import a from './a.js'
    const b = "import c from './c.js'"
    const d = import.meta.url
    export const from = 'x'
    export type E = 'y'
    export { b }
    const f = { import: './f.js', require: './g.js' }
    new URL('./h', base)
  `
  expect(importsOf(toSource('src/x.ts', text))).toEqual([])
})

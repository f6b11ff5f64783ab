import { expect, test } from 'vitest'
import { foldersAreSmall, functionsAreShort, functionsOf } from './length.js'
import type { Ceilings } from './length.js'
import { plant, toSource } from './source.js'

const told = (files: number, ceilings: Ceilings = {}): string[] =>
  foldersAreSmall(ceilings)(
    plant(Object.fromEntries(Array.from({ length: files }, (_, n) => [`src/job/a${n}.ts`, '']))),
  ).map(({ what }) => what)

test('a folder of more than 25 files is refused unless it is listed', () => {
  expect(told(25)).toEqual([])
  expect(told(26)).toEqual([expect.stringContaining('26 files')])
  expect(told(26, { 'src/job': 30 })).toEqual([])
})

test('a listed folder may not grow, and its ceiling must shrink with it', () => {
  expect(told(31, { 'src/job': 30 })).toEqual([expect.stringContaining('may only shrink')])
  expect(told(39, { 'src/job': 60 })).toEqual([expect.stringContaining('lower the ceiling to 39')])
  expect(told(40, { 'src/job': 60 })).toEqual([])
  expect(told(25, { 'src/job': 30 })).toEqual([expect.stringContaining('take it off')])
})

test('a listed folder that no longer exists must be removed from the list', () => {
  expect(told(10, { 'src/client': 30 })).toEqual([expect.stringContaining('no longer there')])
})

test('test files are not counted', () => {
  const tests = Object.fromEntries(Array.from({ length: 40 }, (_, n) => [`src/job/a${n}.test.ts`, '']))
  expect(foldersAreSmall({})(plant(tests))).toEqual([])
})

const body = (lines: number): string => `{\n${'  a()\n'.repeat(lines - 2)}}`

test.each([
  ['function f(): void', 'f'],
  ['export async function* f<T extends { a: 1 }>(a: T, b = { c: 1 }): AsyncGenerator<{ d: T }, void>', 'f'],
  ['const f = async (a: string): Promise<{ b: number } | undefined> =>', 'f'],
  ['const f = a =>', 'f'],
  ['const f = (): A =>', 'f'],
  ['class C { async f(a: B): Promise<void>', 'f'],
  ['class C { static get f(): { a: 1 }', 'f'],
  ['class C { constructor(readonly a: string)', 'constructor'],
  ['const o = { f()', 'f'],
  ['const o = { f: function ()', 'function'],
  ['class C { async *[Symbol.asyncIterator](): AsyncGenerator<A>', 'computed'],
  ['on(function* (a)', 'generator'],
  ['on(() =>', 'callback'],
])('a function past 60 lines is refused: %s', (head, name) => {
  const rule = functionsAreShort({})
  expect(rule(plant({ 'src/job/a.ts': `${head} ${body(60)}` }))).toEqual([])
  expect(rule(plant({ 'src/job/a.ts': `${head} ${body(61)}` }))).toEqual([
    { file: 'src/job/a.ts', line: 1, what: expect.stringContaining(`${name}: 61 lines`) },
  ])
  expect(functionsAreShort({ [`src/job/a.ts#${name}`]: 61 })(plant({ 'src/job/a.ts': `${head} ${body(61)}` }))).toEqual(
    [],
  )
})

test('code after a function is not measured as part of it', () => {
  const text =
    'function f(): string { a() }\ninterface A { b: 1 }\nclass C extends D<E> { f: 1 }\nexport const g = { h: 1 }\n'
  expect(functionsOf(toSource('src/job/a.ts', text))).toHaveLength(1)
})

test.each([
  'if (a)',
  'for (const a of b)',
  'while (a)',
  'switch (a)',
  'try { a() } catch (error)',
  'const a =',
  'call(',
  'class C',
  'interface I extends J<K>',
  'type A = (b: C) => D; const e =',
  'const a = b ? (c) :',
  'call(): void\nexport interface A',
  'call(): void\nconst a =',
  'export const a: Record<string, (b: C) => void> =',
])('a long block that is not a function is fine: %s', (head) => {
  expect(functionsOf(toSource('src/job/a.ts', `${head} ${body(80)}`))).toEqual([])
})

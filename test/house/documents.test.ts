import { expect, test } from 'vitest'
import { documentsNameOnlyWhatExists } from './documents.js'
import { plant } from './source.js'

const files = ['src/index.ts', 'src/job/rules/decide.ts', 'src/store/sqlite/verbs/claim.ts', 'docs/errors.md']
const found = (text: string): string[] =>
  documentsNameOnlyWhatExists(plant({}, { files, documents: [{ path: 'README.md', text }] })).map(({ what }) => what)

test('a path in backticks that exists is accepted, from the root and from src/', () => {
  expect(found('`src/index.ts`, `src/store/sqlite/`, `src/job`, `docs/errors.md`')).toEqual([])
  expect(found('`job/rules/decide.ts` and `src/store/*/verbs/claim.ts`')).toEqual([])
})

test('a path in backticks that does not exist is refused, with its line', () => {
  expect(found('`src/job/decide.ts`')).toEqual(['names src/job/decide.ts, which does not exist'])
  expect(found('`examples/hello.js`')).toEqual(['names examples/hello.js, which does not exist'])
  expect(found('`job/decide.ts`')).toEqual(['names job/decide.ts, which does not exist'])
  expect(found('`src/stores/`')).toEqual(['names src/stores/, which does not exist'])
  expect(found('`src/index`')).toEqual(['names src/index, which does not exist'])
})

test('paths of the reader and other text in backticks are ignored', () => {
  expect(found('`./jobs/send.ts`, `application/json`, `and/or`, `store/memory`, `/usr/bin`')).toEqual([])
})

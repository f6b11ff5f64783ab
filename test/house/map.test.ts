import { expect, test } from 'vitest'
import { mapNamesEveryRoom, mapNamesOnlyWhatExists } from './map.js'
import { plant } from './source.js'
import type { Breach } from './source.js'

const FILES = { 'src/index.ts': '', 'src/job/rules/decide.ts': '', 'src/store/sqlite/verbs/claim.ts': '' }
const onMap = (text: string, rule: typeof mapNamesEveryRoom): string[] =>
  rule(plant(FILES, { doc: () => text })).map(({ what }: Breach) => what)

const TREE = [
  'src/',
  '  job/   pure',
  '    rules/   decisions',
  '  store/ store/sqlite/   the store',
  '    verbs/ queries/',
]

test('a folder that the tree does not have, below its own parent, is refused', () => {
  expect(onMap(TREE.join('\n'), mapNamesEveryRoom)).toEqual([])
  expect(onMap(TREE.slice(0, 4).join('\n'), mapNamesEveryRoom)).toEqual([
    'does not name the folder src/store/sqlite/verbs',
  ])
  expect(onMap(TREE.toReversed().join('\n'), mapNamesEveryRoom)).toEqual([
    'does not name the folder src/job/rules',
    'does not name the folder src/store/sqlite/verbs',
  ])
})

test('a file or folder that the map names and that does not exist is refused', () => {
  expect(onMap('`job/rules/decide.ts`, `verbs/claim.ts`, `src/index.ts`, `rules/`', mapNamesOnlyWhatExists)).toEqual([])
  expect(onMap('`store/*/verbs/claim.ts`', mapNamesOnlyWhatExists)).toEqual([])
  expect(onMap('`rules/undecided.ts`', mapNamesOnlyWhatExists)).toEqual([
    'names rules/undecided.ts, which does not exist',
  ])
  expect(onMap('`words/`', mapNamesOnlyWhatExists)).toEqual(['names words/, which does not exist'])
})

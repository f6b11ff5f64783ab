import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { boundsAreNamed, boundsAreTested } from './house/bounds.js'
import { BANNED_WORDS, EXCEPTIONS, LARGE_FOLDERS, LONG_FUNCTIONS, excuses, isExcused } from './house/exceptions.js'
import { documentsNameOnlyWhatExists } from './house/documents.js'
import { languageIsPlain } from './house/language.js'
import { foldersAreSmall, functionsAreShort } from './house/length.js'
import { mapNamesEveryRoom, mapNamesOnlyWhatExists } from './house/map.js'
import { importsOf, resolve } from './house/imports.js'
import { dependenciesAreAgreed, errorCodesAreDocumented } from './house/promises.js'
import { nonDeterminismOnlyInWorld, sqlOnlyInStore } from './house/purity.js'
import { browserRoomsAreFreeOfNode, everyFileHasARoom, importsPointDown, noImportCycle } from './house/rooms.js'
import { exportsAreListed, indexFilesOnlyList, namesAreHonest, noEmptyCatch, noModuleState } from './house/shape.js'
import { readHouse } from './house/source.js'
import type { Rule } from './house/source.js'
import { mapNamesEveryTable } from './house/tables.js'

/**
 * The house rules, checked on the tree. Each rule is a function of a `House`, tested on planted bad sources beside it
 * in test/house/. Where a rule would make the code worse, test/house/exceptions.ts says why.
 */
const RULES: Readonly<Record<string, Rule>> = {
  'every file is in a room of the design': everyFileHasARoom,
  'imports point down': importsPointDown,
  'no run-time import cycle': noImportCycle,
  'rooms that run in a browser tab import no node: module': browserRoomsAreFreeOfNode,
  'SQL is only under store/': sqlOnlyInStore,
  'clocks, timers and chance come only from the world': nonDeterminismOnlyInWorld,
  'exports are named and listed by hand': exportsAreListed,
  'an index file only lists names': indexFilesOnlyList,
  'files, classes and interfaces have descriptive names': namesAreHonest,
  'no module keeps state': noModuleState,
  'no catch is empty': noEmptyCatch,
  'folders hold at most 25 files, and known larger ones only shrink': foldersAreSmall(LARGE_FOLDERS),
  'functions end before 60 lines, and known longer ones only shrink': functionsAreShort(LONG_FUNCTIONS),
  'run-time dependencies are agreed and have a written reason': dependenciesAreAgreed,
  'ARCHITECTURE.md names every folder of src': mapNamesEveryRoom,
  'ARCHITECTURE.md names only files and folders that exist': mapNamesOnlyWhatExists,
  'documents name only files and folders that exist': documentsNameOnlyWhatExists,
  'ARCHITECTURE.md names every table of both schemas, and no other': mapNamesEveryTable,
  'comments and test names name the actor, and known exceptions only shrink': languageIsPlain(BANNED_WORDS),
  'every error code has an anchor in docs/errors.md': errorCodesAreDocumented,
  'every bound has a case at n − 1, n and n + 1, or a reason for none': boundsAreTested,
  'a limit of a length, a size or a count has a name': boundsAreNamed,
}

const house = readHouse(fileURLToPath(new URL('..', import.meta.url)))

for (const [name, rule] of Object.entries(RULES)) {
  test(name, () => {
    const breaches = rule(house).filter((breach) => !isExcused(breach, name, EXCEPTIONS))
    expect(breaches.map(({ file, line, what }) => `${file}:${line} ${what}`)).toEqual([])
  })
}

test('every exception has a reason and is still needed', () => {
  const idle = EXCEPTIONS.filter((each) => {
    const found = RULES[each.rule]?.(house).some((breach) => excuses(each, each.rule, breach))
    return !found || each.reason.length < 20
  })
  expect(idle).toEqual([])
})

test('a program that imports the package loads the store of PostgreSQL only when it opens one', () => {
  const sources = new Map(house.sources.map((source) => [source.path, source]))
  const loaded = new Set<string>(['src/index.ts'])
  for (const path of loaded)
    for (const { specifier, kind } of importsOf(sources.get(path)!)) {
      const target = kind === 'value' ? resolve(path, specifier) : undefined
      if (target !== undefined) loaded.add(target)
    }
  expect(loaded).toContain('src/store/sqlite/sqlite-store.ts')
  expect(loaded).not.toContain('src/store/postgres/postgres-store.ts')
})

test('the tree was read', () => {
  expect(house.sources.map(({ path }) => path)).toContain('src/errors.ts')
  expect(house.sources.flatMap(({ code }) => code).length).toBeGreaterThan(1_000)
})

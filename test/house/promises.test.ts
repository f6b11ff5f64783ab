import { expect, test } from 'vitest'
import { dependenciesAreAgreed, errorCodesAreDocumented } from './promises.js'
import { plant } from './source.js'
import type { Manifest } from './source.js'

const argued = '# Dependencies\n\n## croner\n\nWhy.\n\n## `pg`, on PostgreSQL\n\nWhy.\n'
const told = (manifest: Manifest, doc: string | undefined = argued): string[] =>
  dependenciesAreAgreed(plant({}, { manifest, doc: () => doc })).map(({ what }) => what)

test('agreed dependencies with a paragraph each are fine', () => {
  expect(told({ dependencies: { croner: '^11' }, scripts: { build: 'x' } })).toEqual([])
  expect(told({ peerDependencies: { pg: '>=8' }, peerDependenciesMeta: { pg: { optional: true } } })).toEqual([])
})

test.each([
  [{ dependencies: { lodash: '^4' } }, 'lodash is not an agreed dependency'],
  [{ dependencies: { '@photostructure/sqlite': '^1' } }, '@photostructure/sqlite is not an agreed dependency'],
  [
    { optionalDependencies: { croner: '^11' } },
    'croner would be installed for all; an optional peer is asked for by name',
  ],
  [{ peerDependencies: { pg: '>=8' } }, 'the peer pg is not optional'],
  [{ scripts: { postinstall: 'x' } }, 'the script "postinstall" would run at install'],
  [{ scripts: { prepare: 'x' } }, 'the script "prepare" would run at install'],
  [{ bundleDependencies: ['croner'] }, 'bundles dependencies'],
] satisfies [Manifest, string][])('%j is refused', (manifest, what) => {
  expect(told(manifest)).toContain(what)
})

test('a dependency without a paragraph is refused', () => {
  expect(told({ dependencies: { hono: '^4' } })).toEqual(['has no heading and paragraph for hono'])
  const peerDependenciesMeta = { sharp: { optional: true } }
  expect(told({ peerDependencies: { sharp: '>=1' }, peerDependenciesMeta })).toEqual([
    'has no heading and paragraph for sharp',
  ])
  expect(dependenciesAreAgreed(plant({}, { manifest: { dependencies: { croner: '^11' } } }))).toHaveLength(1)
  expect(told({ dependencies: { hono: '^4' } }, '## @hono/node-server\n\nhono')).toHaveLength(1)
})

test('an error code without a heading is refused, once and with its line', () => {
  const files = { 'src/errors.ts': `a('E_ONE')\nb('E_TWO')\nc('E_TWO') // 'E_COMMENT'` }
  const doc = (): string => '## E_ONE\n\nIt says E_TWO too.\n'
  expect(errorCodesAreDocumented(plant(files, { doc }))).toEqual([
    { file: 'src/errors.ts', line: 2, what: 'E_TWO has no heading in docs/errors.md' },
  ])
  expect(errorCodesAreDocumented(plant(files))).toHaveLength(2)
})

test('a heading without a code in the sources is refused', () => {
  const doc = (): string => '## `E_ONE`\n\n## E_OLD\n'
  expect(errorCodesAreDocumented(plant({ 'src/errors.ts': `'E_ONE'` }, { doc })).map(({ what }) => what)).toEqual([
    'E_OLD is in no source any more',
  ])
})

import { expect, test } from 'vitest'
import { exportsAreListed, indexFilesOnlyList, namesAreHonest, noEmptyCatch, noModuleState } from './shape.js'
import { plant } from './source.js'
import type { Rule } from './source.js'

const breaches = (rule: Rule, text: string, path = 'src/job/a.ts'): number => rule(plant({ [path]: text })).length

test.each([
  "export * from './b.js'",
  "export * as b from './b.js'",
  "export type * from './b.js'",
  'export default 1',
  'export default function a() {}',
  'export { a as default }',
])('%s is refused', (text) => {
  expect(breaches(exportsAreListed, text)).toBe(1)
})

test('named exports are fine', () => {
  expect(breaches(exportsAreListed, "export { a, b as c } from './b.js'\nexport const d = 1\nexport type E = 2")).toBe(
    0,
  )
})

test('an index file lists names and declares nothing', () => {
  const list = "import { a } from './a.js'\nexport { a }\nexport type {\n  B,\n} from './b.js'\n"
  expect(breaches(indexFilesOnlyList, list, 'src/index.ts')).toBe(0)
  expect(breaches(indexFilesOnlyList, `${list}export const c = 1`, 'src/index.ts')).toBe(1)
  expect(breaches(indexFilesOnlyList, `${list}function d() {}`, 'src/index.ts')).toBe(1)
  expect(breaches(indexFilesOnlyList, `${list}export type E = string`, 'src/index.ts')).toBe(1)
  expect(breaches(indexFilesOnlyList, 'export const c = 1', 'src/job/rules/retry.ts')).toBe(0)
})

test.each([
  'src/utils.ts',
  'src/job/helpers.ts',
  'src/common/clock.ts',
  'test/misc.test.ts',
  'src/job/retryPolicy.ts',
  'src/Job/retry.ts',
  'src/job/retry_policy.ts',
])('%s is refused as a file name', (path) => {
  expect(breaches(namesAreHonest, '', path)).toBe(1)
})

test.each(['src/job/retry-policy.test-d.ts', 'src/store/sqlite/migrations/0001-start.sql', 'scripts/test-nodes.mjs'])(
  '%s is a valid file name',
  (path) => {
    expect(breaches(namesAreHonest, '', path)).toBe(0)
  },
)

test.each([
  'class StoreImpl {}',
  'abstract class BaseStore {}',
  'interface IStore {}',
  'class AbstractStore {}',
  'type IJob = 1',
])('%s is refused as a type name', (text) => {
  expect(breaches(namesAreHonest, text)).toBe(1)
})

test('descriptive names of types are fine', () => {
  expect(
    breaches(namesAreHonest, 'class SqliteStore {}\ninterface Ids {}\nclass Baseline {}\n// class StoreImpl'),
  ).toBe(0)
})

test.each([
  'let count = 0',
  'export let count = 0',
  'var count = 0',
  'import { a } from "./a.js"\nlet b',
  'const seen = new Map<string, Set<number>>()',
  'export const seen = new WeakMap()',
])('%s at module level is refused', (text) => {
  expect(breaches(noModuleState, text)).toBe(1)
  expect(breaches(noModuleState, text, 'src/world/ids.ts')).toBe(0)
})

test('state inside a function or a class, and constant tables, are fine', () => {
  const text = `
    const KNOWN = new Set(['a'])
    function f() { let a = 0; const seen = new Map() }
    class C { #seen = new Map(); m() { let b = 1 } }
    const g = () => { let c }
    const h = { let: 1 }
  `
  expect(breaches(noModuleState, text)).toBe(0)
})

test.each([
  'try { a() } catch {}',
  'try { a() } catch (error) { }',
  'p.catch(() => {})',
  'p.catch((_error) => { })',
  'p?.catch(async () => {})',
])('%s is refused', (text) => {
  expect(breaches(noEmptyCatch, text)).toBe(1)
})

test.each([
  'try { a() } catch { /* closed already */ }',
  'try { a() } catch {\n  // closed already\n}',
  'try { a() } catch (error) { report(error) }',
  'p.catch(() => { /* told elsewhere */ })',
  'p.catch((error) => report(error))',
  'p.catch(report); q(() => {})',
])('%s is fine', (text) => {
  expect(breaches(noEmptyCatch, text)).toBe(0)
})

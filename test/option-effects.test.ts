import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { enqueueRows } from './option-effects/enqueue-rows.js'
import { jobRows } from './option-effects/job-rows.js'
import { millRows } from './option-effects/mill-rows.js'
import { recurringRows, seeRecurring } from './option-effects/recurring-rows.js'
import { LEVELS, placeAt } from './option-effects/row.js'
import type { Level, OptionRow, Placed } from './option-effects/row.js'
import { onPostgres } from './support/fresh-store.js'

/**
 * Every option at every level that takes it: given alone it has its effect, and of two levels the more specific one counts. On
 * PostgreSQL only what the store keeps: the options of one job and of schedules, and those of the mill that change its reads.
 */
const isAll = process.env['MILLRACE_BOUNDS'] === 'all'
const rows = [...jobRows, ...enqueueRows, ...millRows]
/** Levels whose values are written with a job. */
const STORED: readonly Level[] = isAll ? ['enqueue', 'edit'] : ['enqueue']

for (const row of rows) {
  const levels = LEVELS.filter((level) => row.levels.includes(level))
  const here = onPostgres ? levels.filter((level) => row.isStored === true && STORED.includes(level)) : levels
  if (here.length === 0) continue
  describe(`${row.option} (${levels.join(', ')})`, () => {
    if (row.otherwise !== undefined && !onPostgres)
      test('has its default where no level has it', async () => {
        expect(await row.see({})).toEqual(row.otherwise)
      })
    for (const level of here)
      test(`counts where ${level} alone has it`, async () => {
        for (const value of onPostgres && !isAll ? row.values.slice(0, 1) : row.values)
          expect(await row.see(placeAt(row, level, value))).toEqual(value.seen)
      })
    const [nearest, next] = [levels[0] as Level, levels[1] as Level]
    if (levels.length > 1 && !onPostgres)
      test(`undefined of ${nearest} leaves that of ${next}`, async () => {
        const [first] = row.values
        const placed = both(row, [nearest, { given: undefined, seen: undefined }], [next, first])
        expect(await row.see(placed)).toEqual(first.seen)
      })
    for (const [level, other] of onPostgres ? [] : pairsOf(levels).filter(isAll ? () => true : areNextToEachOther))
      test(`of ${level} overrides that of ${other}`, async () => {
        const [first, second] = row.values
        expect(await row.see(both(row, [level, first], [other, second]))).toEqual(first.seen)
      })
  })
}

/** Options of a schedule that the store reads at a tick. */
const AT_A_TICK = new Set(['overlap', 'expires', 'key', 'unique', 'onDuplicate', 'after', 'onParentFailure', 'group'])

describe('an option of recurring()', () => {
  const here = recurringRows.filter(({ option }) => !onPostgres || AT_A_TICK.has(option))
  test.each(here.map((row) => [row.option, row] as const))(
    '%s counts, and so does its change alone',
    async (_, row) => {
      const options = row.values.map(({ given }) => ({ [row.option]: given }))
      const [first, second] = options as [object, object]
      if (onPostgres) return expect(await seeRecurring(row, [first, second])).toEqual(row.values[1].seen)
      expect(await seeRecurring(row, [first])).toEqual(row.values[0].seen)
      expect(await seeRecurring(row, [first, second])).toEqual(row.values[1].seen)
      expect(await seeRecurring(row, [second, first])).toEqual(row.values[0].seen)
    },
  )
})

function pairsOf(levels: readonly Level[]): [Level, Level][] {
  return levels.flatMap((level, i) => levels.slice(i + 1).map((other): [Level, Level] => [level, other]))
}

/** The others follow from these, unless a level is special: `MILLRACE_BOUNDS=all` tries every pair. */
function areNextToEachOther([level, other]: [Level, Level], _: number, pairs: readonly [Level, Level][]): boolean {
  return pairs.find(([each]) => each === level)?.[1] === other
}

type Given = readonly [Level, OptionRow['values'][number]]

function both(row: OptionRow, [level, value]: Given, [other, less]: Given): Placed {
  return { ...placeAt(row, other, less), ...placeAt(row, level, value) }
}

/** The options of each level, as their types list them. */
const TYPES: readonly (readonly [level: Level | 'recurring', file: string, type: string])[] = [
  ['mill', 'src/mill/options.ts', 'MillOptions'],
  ['category', 'src/job/definition/define.ts', 'SharedOptions'],
  ['category', 'src/job/definition/define.ts', 'CategoryOptions'],
  ['job', 'src/job/definition/define.ts', 'SharedOptions'],
  ['job', 'src/job/definition/define.ts', 'JobOptions'],
  ['enqueue', 'src/job/enqueue.ts', 'EnqueueOptions'],
  ['edit', 'src/client/commands/edit.ts', 'JobEdit'],
  ['recurring', 'src/schedule/record.ts', 'RecurringOptions'],
]

/** Options without a row, and the test that sees their effect, or why there is none. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  'mill store': 'test/store-gone.test.ts',
  'job upcast': 'test/old-payloads.test.ts',
  'mill encryption': 'test/secrets.test.ts',
  'category encrypt': 'test/secrets.test.ts',
  'job encrypt': 'test/secrets.test.ts',
  'mill workflows': 'test/workflows.test.ts',
  'mill version': 'test/lists.test.ts',
  'mill allowedErrorTime': 'test/health.test.ts',
  'mill startGrace': 'test/health.test.ts',
  'mill onSystemError': 'test/health.test.ts',
  'mill onSystemRecovery': 'test/health.test.ts',
  'category executor': 'test/isolation.test.ts',
  'job executor': 'test/isolation.test.ts',
  'category module': 'test/isolation.test.ts',
  'job module': 'test/isolation.test.ts',
  'category memoryMb': 'test/isolation.test.ts',
  'job memoryMb': 'test/isolation.test.ts',
  'mill outage': 'test/outages.test.ts',
  'category limit': 'test/limits.test.ts',
  'job limit': 'test/limits.test.ts',
  'category rate': 'test/limits.test.ts',
  'job rate': 'test/limits.test.ts',
  'enqueue tx': 'test/transactions.test.ts',
  'category is': 'src/job/definition/inheritance.test.ts',
  'job is': 'src/job/definition/inheritance.test.ts',
  'category description': 'src/job/definition/define.ts',
  'recurring missed': 'test/recurring.test.ts',
}

/** The names that an interface declares, and those of the `Pick` or `Omit` that it extends. */
function optionsOf(file: string, type: string): string[] {
  const source = readFileSync(new URL(`../${file}`, import.meta.url), 'utf8')
  const from = source.indexOf(`export interface ${type}`)
  const declared = source.slice(from, source.indexOf('\n}', from))
  const picked = /extends Pick<\s*EnqueueOptions,([^>]*)>/.exec(declared)?.[1] ?? ''
  const names = [...declared.matchAll(/^ {2}readonly (\w+)\??:/gm)].map(([, name]) => name as string)
  const fromEnqueue = type === 'RecurringOptions' ? optionsOf('src/job/enqueue.ts', 'EnqueueOptions') : []
  const omitted = [...(/extends Omit<EnqueueOptions,([^>]*)>/.exec(declared)?.[1] ?? '').matchAll(/'(\w+)'/g)]
  return [
    ...names,
    ...[...picked.matchAll(/'(\w+)'/g)].map(([, name]) => name as string),
    ...fromEnqueue.filter((name) => !omitted.some(([, each]) => each === name)),
  ]
}

test('every option of every level has a row', () => {
  const missing = TYPES.flatMap(([level, file, type]) =>
    [...new Set(optionsOf(file, type))]
      .filter((option) => !hasRow(level, option) && !(`${level} ${option}` in ELSEWHERE))
      .map((option) => `${level} ${option}`),
  )
  expect(missing).toEqual([])
  const counts = TYPES.map(([, file, type]) => optionsOf(file, type).length)
  expect(Math.min(...counts)).toBeGreaterThan(0)
})

test('every option that configure() may change has a row for it', () => {
  const source = readFileSync(new URL('../src/mill/options.ts', import.meta.url), 'utf8')
  const changeable = [...(/const CHANGEABLE = \[([^\]]*)\]/.exec(source)?.[1] ?? '').matchAll(/'(\w+)'/g)]
  expect(changeable.map(([, name]) => name as string).filter((name) => !hasRow('configure', name))).toEqual([])
  expect(changeable.length).toBeGreaterThan(0)
})

function hasRow(level: Level | 'recurring', option: string): boolean {
  if (level === 'recurring') return recurringRows.some((row) => row.option === option)
  return rows.some((row) => row.option.split('.')[0] === option && row.levels.includes(level))
}

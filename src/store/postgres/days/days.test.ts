import { expect, test } from 'vitest'
import type { Connection } from '../connection/connection.js'
import type { SqlExecutor } from '../connection/sql-executor.js'
import type { DayQueries } from '../queries/days.js'
import { beforeDay, PARTITIONED_TABLES, partitionOf } from '../queries/days.js'
import { DAY_MS } from '../numbers.js'
import { DayScan } from './day-scan.js'
import { maintainDays, Owners } from './days.js'
import type { DaysWalk } from './days.js'

const TODAY = 25_000
const NOW = TODAY * DAY_MS + 5

/** Each statement is its own name, with the day that it is for. */
const queries = new Proxy(
  {},
  {
    get: (_, name: string) =>
      /^(readParts|readOwner|tryAlone|lockJobs|lastNumber|lockPartitioned|scanSlice|pruneSlice)$/.test(name)
        ? name
        : (...given: unknown[]) => [name, ...given].join(' '),
  },
) as unknown as DayQueries

/** A server that answers by the name of the statement. */
function server(answers: Readonly<Record<string, (values: readonly unknown[]) => object[]>>) {
  const sent: string[] = []
  const given = new Map<string, readonly unknown[]>()
  const query = async (text: string, values: readonly unknown[]): Promise<object[]> => {
    sent.push(text)
    given.set(text, values)
    const [name = ''] = text.split(' ')
    return answers[name]?.(values) ?? DEFAULTS[name]?.() ?? []
  }
  const executor = { query } as unknown as SqlExecutor
  const connection = { query, transaction: (_: unknown, work: (tx: SqlExecutor) => unknown) => work(executor) }
  return {
    connection: connection as unknown as Connection,
    values: (text: string) => given.get(text),
    sent,
    count: (name: string) => sent.filter((each) => each.startsWith(name)).length,
  }
}

const DEFAULTS: Readonly<Record<string, () => object[]>> = {
  readOwner: () => [{ may: true, owner: 'ada', role: 'ada' }],
  tryAlone: () => [{ alone: true }],
  lastNumber: () => [{ number: '77' }],
  scanSlice: () => [{ rows: 0, last: null, staying: null }],
  moveJobs: () => [{ rows: 0 }],
}

const parts = (...days: number[]): object[] =>
  days.flatMap((day) => PARTITIONED_TABLES.map((of) => ({ name: partitionOf(of, day) })))

const newWalk = (): DaysWalk => ({ days: [], scan: undefined })

test('the partitions of today and two days are created where they are missing, each in its own transaction', async () => {
  const { connection, sent, count } = server({ readParts: () => parts(TODAY) })
  expect(await maintainDays(connection, queries, NOW, newWalk())).toEqual({ forgotten: 0, again: false })
  const created = sent.filter((each) => each.startsWith('create'))
  expect(created).toEqual(
    [TODAY + 1, TODAY + 2].flatMap((day) => PARTITIONED_TABLES.map((of) => `create ${of} ${day}`)),
  )
  expect([count('attach'), count('give'), count('tryAlone')]).toEqual([created.length, 0, created.length])
  expect(sent).toContain(`sweepRevived ${TODAY}`)
})

test('past days are dropped from the oldest on, and their jobs counted without those that stay', async () => {
  const slices: Record<string, object[]> = {}
  const { connection, sent } = server({
    readParts: () => parts(TODAY - 12, TODAY - 20, TODAY, TODAY + 1, TODAY + 2),
    scanSlice: ([after]) => slices[String(after)] ?? [{ rows: 50, last: '9', staying: '[3, 4]' }],
    moveJobs: () => [{ rows: 2 }],
  })
  expect(await maintainDays(connection, queries, NOW, newWalk())).toEqual({ forgotten: 96, again: false })
  const dropped = sent.filter((each) => each.startsWith('drop ')).map((each) => each.split(' ').at(-1))
  expect(dropped).toEqual([TODAY - 20, TODAY - 12].flatMap((day) => PARTITIONED_TABLES.map(() => String(day))))
  expect(sent).toContain(`sweepRevived ${TODAY - 20}`)
  expect(sent.filter((each) => each === 'scanSlice').length).toBe(4)
})

test('a lock that another process holds ends the sweep at once, and the day is tried again at the next', async () => {
  let isAlone = false
  const { connection, count } = server({
    readParts: () => parts(TODAY - 20, TODAY - 19, TODAY, TODAY + 1, TODAY + 2),
    tryAlone: () => [{ alone: isAlone }],
    scanSlice: () => [{ rows: 10, last: '9', staying: null }],
  })
  const walk = newWalk()
  expect(await maintainDays(connection, queries, NOW, walk)).toEqual({ forgotten: 0, again: true })
  expect([count('tryAlone'), count('scanSlice'), walk.days]).toEqual([1, 1, [TODAY - 20, TODAY - 19]])
  isAlone = true
  expect(await maintainDays(connection, queries, NOW, walk)).toEqual({ forgotten: 20, again: false })
  expect(count('sweepRevived')).toBe(1)
})

test.each(['55P03', '23514', '40P01'])('the error %s of a lock is retried later, and no other is', async (code) => {
  const refused = (state: string) => () => {
    throw Object.assign(new Error('no'), { code: state })
  }
  const there = { readParts: () => parts(TODAY - 20, TODAY, TODAY + 1, TODAY + 2) }
  const later = server({ ...there, lockJobs: refused(code) })
  expect(await maintainDays(later.connection, queries, NOW, newWalk())).toEqual({ forgotten: 0, again: true })
  const walk = newWalk()
  await expect(
    maintainDays(server({ ...there, lockJobs: refused('42501') }).connection, queries, NOW, walk),
  ).rejects.toThrow('no')
  expect(walk).toMatchObject({ days: [], scan: undefined, rows: undefined, isDenied: true })
  const other = newWalk()
  await expect(
    maintainDays(server({ ...there, lockJobs: refused('53100') }).connection, queries, NOW, other),
  ).rejects.toThrow('no')
  expect([other.days, other.isDenied]).toEqual([[], undefined])
})

test('a young day of which more than a tenth stays is kept whole, without a lock', async () => {
  const staying = JSON.stringify(Array.from({ length: 11 }, (_, i) => i))
  const { connection, count } = server({
    readParts: () => parts(TODAY - 10, TODAY, TODAY + 1, TODAY + 2),
    scanSlice: () => [{ rows: 100, last: '9', staying }],
  })
  expect(await maintainDays(connection, queries, NOW, newWalk())).toEqual({ forgotten: 0, again: false })
  expect([count('tryAlone'), count('drop')]).toEqual([0, 0])
})

test('a long day is read for 200 slices a sweep, and the next sweep goes on', async () => {
  let left = 250
  const { connection, count } = server({
    readParts: () => parts(TODAY - 20, TODAY, TODAY + 1, TODAY + 2),
    scanSlice: () => [{ rows: (left -= 1) > 0 ? 2_000 : 1, last: '9', staying: null }],
  })
  const walk = newWalk()
  expect(await maintainDays(connection, queries, NOW, walk)).toEqual({ forgotten: 0, again: true })
  expect(count('scanSlice')).toBe(200)
  await maintainDays(connection, queries, NOW, walk)
  expect(walk.days).toEqual([])
})

test('a scan is over after a slice that is short or empty, or when too many stay', async () => {
  const scanOf = async (slice: object | undefined): Promise<DayScan> => {
    const scan = new DayScan(TODAY - 20, NOW)
    const { connection } = server({ scanSlice: () => (slice === undefined ? [] : [slice]) })
    await scan.readSlice(connection, queries)
    return scan
  }
  expect((await scanOf({ rows: 2_000, last: '9', staying: null })).isOver).toBe(false)
  expect((await scanOf({ rows: 1_999, last: '9', staying: null })).isOver).toBe(true)
  expect((await scanOf({ rows: 2_000, last: null, staying: null })).isOver).toBe(true)
  expect((await scanOf(undefined)).isOver).toBe(true)
  const many = (length: number): string => JSON.stringify(Array.from({ length }, (_, i) => i))
  const full = await scanOf({ rows: 2_000, last: '9', staying: many(10_000) })
  expect([full.isOver, full.mayBeDropped]).toEqual([true, false])
  const nearly = await scanOf({ rows: 2_000, last: '9', staying: many(9_999) })
  expect([nearly.isOver, nearly.mayBeDropped]).toEqual([false, true])
})

test('which days are young, and how many of their jobs may stay', async () => {
  const mayBeDropped = async (day: number, staying: number): Promise<boolean> => {
    const scan = new DayScan(day, NOW)
    const rows = JSON.stringify(Array.from({ length: staying }, (_, i) => i))
    await scan.readSlice(server({ scanSlice: () => [{ rows: 100, last: '9', staying: rows }] }).connection, queries)
    return scan.mayBeDropped
  }
  expect(await mayBeDropped(TODAY - 10, 10)).toBe(true)
  expect(await mayBeDropped(TODAY - 10, 11)).toBe(false)
  expect(await mayBeDropped(TODAY - 11, 11)).toBe(true)
})

test('the owner of the tables is read once, and again only if that failed', async () => {
  let owner: object[] | undefined
  const { connection, count } = server({
    readOwner: () => {
      if (owner === undefined) throw new Error('away')
      return owner
    },
  })
  const warned: unknown[] = []
  const owners = new Owners(connection, queries, (each) => warned.push(each))
  await expect(owners.check()).rejects.toThrow('away')
  owner = [{ may: false, owner: 'eve', role: 'ada' }]
  await owners.check()
  await owners.check()
  expect([count('readOwner'), warned]).toEqual([2, owner])
  owner = [{ may: true, owner: 'ada', role: 'ada' }]
  await new Owners(connection, queries, (each) => warned.push(each)).check()
  expect(warned.length).toBe(1)
})

test('a day is dropped in one transaction: what stays is moved first, and the moves and ends of the rest are noted', async () => {
  const { connection, sent, values } = server({
    readParts: () => parts(TODAY - 20, TODAY, TODAY + 1, TODAY + 2),
    scanSlice: () => [{ rows: 50, last: '9', staying: '[3, 4]' }],
    moveJobs: () => [{ rows: 3 }],
  })
  expect(await maintainDays(connection, queries, NOW, newWalk())).toEqual({ forgotten: 47, again: false })
  const day = TODAY - 20
  const dropping = sent.slice(sent.indexOf('lockPartitioned'))
  expect(dropping).toEqual([
    'lockPartitioned',
    `detach jobs ${day}`,
    `moveJobs ${day}`,
    `detach history ${day}`,
    `moveHistory ${day}`,
    `detach labels ${day}`,
    `moveLabels ${day}`,
    `dropLabels ${day}`,
    `noteGone ${day}`,
    `noteLongWork ${day}`,
    ...PARTITIONED_TABLES.map((of) => `drop ${of} ${day}`),
  ])
  expect(values(`moveJobs ${day}`)).toEqual(['{3,4}', '77'])
  expect(values('scanSlice')).toEqual([beforeDay(day), beforeDay(day + 1), String(NOW), '2000'])
})

test('of a day of which some tables were dropped before, the others are dropped', async () => {
  const day = TODAY - 20
  const dropsOf = async (of: 'jobs' | 'history' | 'labels'): Promise<string[]> => {
    const { connection, sent } = server({
      readParts: () => [
        { name: partitionOf(of, day) },
        { name: 'jobs_default' },
        ...parts(TODAY, TODAY + 1, TODAY + 2),
      ],
      scanSlice: () => [{ rows: 5, last: '9', staying: null }],
    })
    await maintainDays(connection, queries, NOW, newWalk())
    return sent.slice(sent.indexOf('lockPartitioned') + 1)
  }
  const end = (of: string): string[] => [`drop ${of} ${day}`]
  const labels = [`dropLabels ${day}`]
  expect(await dropsOf('jobs')).toEqual([
    `detach jobs ${day}`,
    `moveJobs ${day}`,
    ...labels,
    `noteLongWork ${day}`,
    ...end('jobs'),
  ])
  expect(await dropsOf('history')).toEqual([
    `detach history ${day}`,
    `moveHistory ${day}`,
    ...labels,
    `noteGone ${day}`,
    ...end('history'),
  ])
  expect(await dropsOf('labels')).toEqual([`detach labels ${day}`, `moveLabels ${day}`, ...labels, ...end('labels')])
})

test('a day that another process has dropped meanwhile is passed over', async () => {
  let reads = 0
  const { connection, count } = server({
    readParts: () => ((reads += 1) === 1 ? parts(TODAY - 20, TODAY, TODAY + 1, TODAY + 2) : parts(TODAY)),
    scanSlice: () => [{ rows: 5, last: '9', staying: null }],
  })
  expect(await maintainDays(connection, queries, NOW, newWalk())).toEqual({ forgotten: 0, again: false })
  expect([count('lockPartitioned'), count('drop')]).toEqual([0, 0])
})

test('a partition that another process made, or whose rows are in the default partition, is not created', async () => {
  let reads = 0
  const faster = server({
    readParts: () => ((reads += 1) === 1 ? parts(TODAY, TODAY + 1) : parts(TODAY, TODAY + 1, TODAY + 2)),
  })
  await maintainDays(faster.connection, queries, NOW, newWalk())
  expect(faster.count('create')).toBe(0)
  const taken = server({ readParts: () => parts(TODAY, TODAY + 1), isTaken: () => [{ taken: 1 }] })
  await maintainDays(taken.connection, queries, NOW, newWalk())
  expect(taken.count('create')).toBe(0)
})

test('a member of the owning role gives its partitions to the owner, and another role creates and drops none', async () => {
  const there = { readParts: () => parts(TODAY - 20, TODAY, TODAY + 1) }
  const member = server({ ...there, readOwner: () => [{ may: true, owner: 'eve', role: 'ada' }] })
  await maintainDays(member.connection, queries, NOW, newWalk())
  expect(member.sent.filter((each) => each.startsWith('give'))).toEqual(
    PARTITIONED_TABLES.map((of) => `give ${of} ${TODAY + 2} eve`),
  )
  for (const walk of [newWalk(), { ...newWalk(), isDenied: true }]) {
    const other = server({ ...there, readOwner: () => [{ may: walk.isDenied === true, owner: 'eve', role: 'ada' }] })
    await maintainDays(other.connection, queries, NOW, walk)
    expect([other.count('create'), other.count('drop'), other.count('tryAlone'), walk.mayDrop]).toEqual([
      0,
      0,
      0,
      false,
    ])
  }
})

test('where days may not be dropped their expired jobs are deleted slice by slice, and counted', async () => {
  const slices = [
    { rows: 2_000, last: '8', forgotten: 30 },
    { rows: 1_999, last: '9', forgotten: 4 },
    { rows: 2_000, last: null, forgotten: 500 },
  ]
  const afters: unknown[] = []
  const { connection } = server({
    readParts: () => parts(TODAY - 20, TODAY - 19, TODAY - 18),
    readOwner: () => [{ may: false, owner: 'eve', role: 'ada' }],
    pruneSlice: ([after, before]) => (afters.push([after, before]), slices.splice(0, 1)),
  })
  expect(await maintainDays(connection, queries, NOW, newWalk())).toEqual({ forgotten: 534, again: false })
  const bounds = (day: number): string[] => [beforeDay(day), beforeDay(day + 1)]
  expect(afters).toEqual([bounds(TODAY - 20), ['8', beforeDay(TODAY - 19)], bounds(TODAY - 19), bounds(TODAY - 18)])
})

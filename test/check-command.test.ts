import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { run as runCommandLine } from '../src/cli/run.js'
import { event, job, workflow } from '../src/index.js'
import type { CheckFinding, Mill } from '../src/index.js'
import { systemWorld } from '../src/world/world.js'
import { freshStore } from './support/fresh-store.js'
import { openedMills } from './support/opened-mills.js'

/** What `mill.check()` finds inside sequences and workflows, and `millrace check`, on either store. */

const { folder, open } = openedMills('check', { poll: '50ms' })

async function all(mill: Mill): Promise<CheckFinding[]> {
  const found: CheckFinding[] = []
  for await (const finding of mill.check()) found.push(finding)
  return found
}

const byText = (a: string, b: string): number => (a < b ? -1 : 1)
const key = (fill: number): Uint8Array => new Uint8Array(32).fill(fill)
const k1 = { keys: { k1: key(1) }, current: 'k1' }
const k2 = { keys: { k2: key(2) }, current: 'k2' }

test('of a sequence the first item that is not done and could not run is found, in pages', async () => {
  const store = freshStore(folder)
  const any = job('row', (n: number) => n)
  const before = await open({ jobs: [any] }, store)
  const items = Array.from({ length: 450 }, (_, n) => n)
  const sequence = await before.sequence(any, items, { start: false })
  const fits = await before.sequence(any, [1, 2], { start: false })
  expect(await all(before)).toEqual([])
  const picky = job('row', { accepts: (n: number) => n < 430, run: (n) => n })
  const now = await open({ jobs: [picky] }, store)
  expect(await all(now)).toMatchObject([{ id: sequence.id, problem: 'not-accepted', part: 'item', at: '430' }])
  const none = await open({ jobs: [job('other', () => 1)] }, store)
  const found = await all(none)
  expect(found.map(({ id, problem, part }) => `${id} ${problem} ${part}`).toSorted(byText)).toEqual(
    [sequence.id, fits.id].map((id) => `${id} no-handler payload`).toSorted(byText),
  )
})

test('an item that is done is not read, and one whose key is gone is found', async () => {
  const store = freshStore(folder)
  const row = job('row', {
    encrypt: true,
    run: (n: number) => {
      if (n === 2) throw new Error('not yet')
    },
    retry: { backoff: { start: '1h' } },
  })
  const mill = await open({ jobs: [row], encryption: k1 }, store)
  await mill.start()
  const sequence = await mill.sequence(row, [1, 2, 3])
  await expect.poll(async () => (await mill.get(sequence.id))?.state, { timeout: 20_000 }).toBe('retrying')
  expect(await all(mill)).toEqual([])
  const rotated = await open({ jobs: [row], encryption: k2 }, store)
  expect(await all(rotated)).toMatchObject([{ problem: 'no-key', part: 'item', at: '1', state: 'retrying' }])
})

test('the input, the recorded steps and the untaken events of a workflow are decoded', async () => {
  const store = freshStore(folder)
  const go = event<string>('go')
  const flow = workflow('flow', {
    encrypt: true,
    run: async (_: { n: number }, w) => {
      await w.step('first', () => 'secret')
      await w.sleep('1h')
      await w.waitFor(go)
    },
  })
  const mill = await open({ jobs: [flow], encryption: k1 }, store)
  await mill.start()
  const handle = await mill.enqueue(flow, { n: 1 })
  await expect.poll(async () => (await handle.get())?.state, { timeout: 20_000 }).toBe('scheduled')
  expect(await mill.send(handle.id, go, 'now')).toBe(true)
  expect(await all(mill)).toEqual([])
  const rotated = await open({ jobs: [flow], encryption: k2 }, store)
  expect((await all(rotated)).map(({ problem, part, at }) => `${problem} ${part} ${at}`)).toEqual([
    'no-key payload undefined',
    'no-key step /step:first#0',
    'no-key event go',
  ])
})

async function check(
  ...args: string[]
): Promise<{ readonly code: number; readonly out: string; readonly err: string }> {
  let [out, err] = ['', '']
  const code = await runCommandLine(['check', ...args], {
    stdout: (text) => (out += `${text}\n`),
    stderr: (line) => (err += `${line}\n`),
    world: systemWorld(),
  })
  return { code, out, err }
}

let modules = 0
/** A module of jobs, as a user would give it: the package is not built here, so its brands are written by hand. */
function moduleOf(name: string, options: string, more = ''): string {
  const path = join(folder, `jobs-${(modules += 1)}.mjs`)
  writeFileSync(
    path,
    `export const it = { [Symbol.for('millrace.job')]: true, name: '${name}', options: { ${options} } }\n${more}`,
  )
  return path
}

test('millrace check prints a table, or JSON lines, and fails when something was found', async () => {
  const store = freshStore(folder)
  const any = job('mail', (p: { to: string }) => p.to)
  const mill = await open({ jobs: [any] }, store)
  const bad = await mill.enqueue(any, { to: 'a\u001B[31m' }, { queue: 'letters' })
  await mill.recurring('daily', any, { to: 'nowhere' }, '0 9 * * *')
  const fitting = moduleOf('mail', 'run: () => 1')
  expect(await check('--jobs', fitting, '--store', store)).toEqual({ code: 0, out: 'no problem was found\n', err: '' })
  expect(await check('--jobs', fitting, '--store', store, '--json')).toEqual({ code: 0, out: '', err: '' })

  const picky = moduleOf('mail', 'run: () => 1, accepts: () => { throw new Error("bad \\u001B[31m address") }')
  const table = await check('--jobs', picky, '--store', store)
  expect([table.code, table.err]).toEqual([1, 'millrace check: 2 problems were found\n'])
  const [head, ...lines] = table.out.trimEnd().split('\n')
  expect(head).toMatch(/^JOB +ID +STATE +PROBLEM +WHERE +MESSAGE$/)
  expect(lines.toSorted(byText)[0]).toMatch(
    new RegExp(`^mail +${bad.id} +ready +not-accepted +payload +the check threw .*bad`),
  )
  expect(lines.toSorted(byText)[1]).toMatch(/^mail +schedule daily +not-accepted +payload/)
  expect(table.out).not.toContain('\u001B')

  const json = await check('--jobs', picky, '--store', store, '--json', '--queue', 'letters')
  expect(json.code).toBe(1)
  expect(JSON.parse(json.out)).toMatchObject({ id: bad.id, problem: 'not-accepted', part: 'payload', queue: 'letters' })
  expect((await check('--jobs', picky, '--store', store, '--name', 'other')).code).toBe(0)
  expect((await check('--jobs', picky, '--store', store, '--state', 'done')).code).toBe(0)
})

test('millrace check reads encrypted jobs with the keys of a module', async () => {
  const store = freshStore(folder)
  const secret = job('secret', { encrypt: true, run: (n: number) => n })
  const mill = await open({ jobs: [secret], encryption: k1 }, store)
  await mill.enqueue(secret, 1)
  const keys = (fill: number): string =>
    `export const encryption = { keys: { k${fill}: new Uint8Array(32).fill(${fill}) }, current: 'k${fill}' }`
  const [right, wrong] = [1, 2].map((fill) => moduleOf('secret', 'run: () => 1, encrypt: true', keys(fill)))
  const args = ['--jobs', right as string, '--store', store, '--encryption']
  expect((await check(...args, right as string)).code).toBe(0)
  const rotated = await check(...args, wrong as string)
  expect(rotated.code).toBe(1)
  expect(rotated.out).toContain('no-key')
})

test('millrace check refuses a misuse with 2, and reports a store that it cannot reach with 4', async () => {
  const store = freshStore(folder)
  const jobs = moduleOf('mail', 'run: () => 1')
  const cases: [string[], number, RegExp][] = [
    [['--store', store], 2, /--jobs is missing: give the module whose exports are all jobs/],
    [['--jobs', jobs, '--stor', store], 2, /--stor is not an option; did you mean "--store"/],
    [['--jobs', join(folder, 'absent.mjs'), '--store', store], 2, /--jobs cannot be loaded: .*absent/],
    [['--jobs', jobs, '--encryption', jobs, '--store', store], 2, /--encryption has no export named "encryption"/],
    [['--jobs', jobs, '--store', 'postgres://u:p@127.0.0.1:1/x'], 4, /cannot be reached/],
  ]
  for (const [args, code, message] of cases) {
    const answer = await check(...args)
    expect([answer.code, answer.out]).toEqual([code, ''])
    expect(answer.err).toMatch(message)
  }
  const mill = await open({ jobs: [] }, store)
  await mill.close()
  const unknown = await check('--jobs', jobs, '--store', store, '--state', 'redy')
  expect([unknown.code, unknown.out]).toEqual([2, ''])
  expect(unknown.err).toMatch(/state.*redy/)
})

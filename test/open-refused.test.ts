import { spawnSync } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { urlInBundle } from '../scripts/bundle.mjs'
import { useProcesses } from './processes/child.js'

/** Paths that cannot be a store, and links to one that can. */

const folder = mkdtempSync(join(tmpdir(), 'millrace-refused-'))
const processes = useProcesses()
const isRoot = process.getuid?.() === 0
/** Permissions do not bind root, so these paths are opened by a process of another user. */
const NOBODY = 65_534

beforeAll(async () => {
  chmodSync(folder, 0o755)
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

interface Outcome {
  readonly name: string
  readonly code: string
  readonly message: string
}

function openAs(uid: number | undefined, paths: readonly string[]): Outcome[] {
  const front = urlInBundle('index.js')
  const program = `
    import { millrace } from ${JSON.stringify(front)}
    const outcomes = []
    for (const store of ${JSON.stringify(paths)})
      try {
        await (await millrace({ store, logger: false })).close()
        outcomes.push({ name: 'opened' })
      } catch ({ name, code, message }) {
        outcomes.push({ name, code, message })
      }
    console.log(JSON.stringify(outcomes))`
  const as = uid === undefined ? {} : { uid, gid: uid }
  const child = spawnSync(process.execPath, ['--input-type=module', '-e', program], {
    encoding: 'utf8',
    cwd: '/',
    ...as,
  })
  if (child.status !== 0) throw new Error(`the program failed: ${child.error?.message ?? child.stderr}`)
  return JSON.parse(child.stdout) as Outcome[]
}

function canRunAs(uid: number | undefined): boolean {
  try {
    openAs(uid, [])
    return true
  } catch {
    return false
  }
}

interface Made {
  readonly folder: string
  readonly file: string
}

let folders = 0
function makeFolder(mode = 0o777): string {
  const made = join(folder, `${(folders += 1)}`)
  mkdirSync(made)
  chmodSync(made, mode)
  return made
}

/** Stores that root, or this user, has made and closed. */
function makeStores<Name extends string>(...names: Name[]): Record<Name, Made> {
  const made = names.map((name) => [name, makeFolder()] as const)
  const stores = made.map(([name, each]) => [name, { folder: each, file: join(each, 'jobs.db') }] as const)
  const files = stores.map(([, { file }]) => file)
  expect(openAs(undefined, files)).toEqual(files.map(() => ({ name: 'opened' })))
  for (const file of files) chmodSync(file, 0o666)
  return Object.fromEntries(stores) as Record<Name, Made>
}

// Windows has no such permissions. Where other users have no access to this repository, they cannot run the program.
const another = isRoot ? NOBODY : undefined
test.skipIf(process.platform === 'win32')(
  'a path that this user may not use is a typed error with what to do',
  (context) => {
    const names = ['closed', 'unreadable', 'readOnly', 'inReadOnly', 'foreignWal'] as const
    const { closed, unreadable, readOnly, inReadOnly, foreignWal } = makeStores(...names)
    if (!canRunAs(another)) return context.skip('another user cannot run the package from this folder')
    chmodSync(closed.folder, 0o700)
    chmodSync(unreadable.file, 0o000)
    chmodSync(readOnly.file, 0o444)
    chmodSync(inReadOnly.folder, 0o555)
    writeFileSync(`${foreignWal.file}-wal`, '', { mode: 0o000 })
    const outcomes = openAs(another, [
      ...(isRoot ? [closed.file] : []),
      unreadable.file,
      readOnly.file,
      inReadOnly.file,
      join(makeFolder(0o555), 'new.db'),
      foreignWal.file,
    ])
    const told = outcomes.map(({ name, code, message }) => ({ name, code, message }))
    expect(told).toEqual(
      [
        ...(isRoot ? [['E_CANNOT_OPEN', /may not enter a folder on the way to it \(EACCES\); change/]] : []),
        ['E_CANNOT_OPEN', /jobs\.db cannot be opened: this user \(uid \d+\) may not read it; change its owner/],
        ['E_READ_ONLY', /jobs\.db is read-only for this user/],
        ['E_READ_ONLY', /its folder is read-only for this user .* -wal and -shm beside/],
        ['E_READ_ONLY', /new\.db cannot be made: its folder .* is read-only/],
        ['E_CANNOT_OPEN', /may not read and write .*jobs\.db-wal, which another user made/],
      ].map(([code, text]) => ({ name: 'StoreError', code, message: expect.stringMatching(text as RegExp) })),
    )
  },
)

/** Mounted read-only after a store was made in it; undefined where this machine does not allow to mount. */
function readOnlyMount(): string | undefined {
  if (process.platform !== 'linux' || !isRoot) return undefined
  const disk = makeFolder()
  if (spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=16m', 'tmpfs', disk]).status !== 0) return undefined
  expect(openAs(undefined, [join(disk, 'jobs.db')])).toEqual([{ name: 'opened' }])
  spawnSync('mount', ['-o', 'remount,ro', disk])
  return disk
}

test('a file system that is mounted read-only is E_READ_ONLY at the open', (context) => {
  const disk = readOnlyMount()
  if (disk === undefined) return context.skip('mounting a file system needs root on Linux')
  try {
    const outcomes = openAs(undefined, [join(disk, 'jobs.db'), join(disk, 'new.db')])
    expect(outcomes.map(({ code }) => code)).toEqual(['E_READ_ONLY', 'E_READ_ONLY'])
  } finally {
    spawnSync('umount', [disk])
  }
})

test('a path that cannot exist is a typed error with what to do', () => {
  const made = makeFolder()
  symlinkSync(join(made, 'b.db'), join(made, 'a.db'))
  symlinkSync(join(made, 'a.db'), join(made, 'b.db'))
  writeFileSync(join(made, 'file'), '')
  symlinkSync(join(made, 'nowhere', 'jobs.db'), join(made, 'dangling.db'))
  const before = readdirSync(made)
  const outcomes = openAs(undefined, [
    join(made, 'a.db'),
    join(made, 'n'.repeat(300)),
    join(made, 'n'.repeat(250)),
    join(made, 'n/'.repeat(3_000), 'jobs.db'),
    join(made, 'file', 'jobs.db'),
    join(made, 'missing', 'n'.repeat(245)),
    join(made, 'dangling.db'),
    ...(process.platform === 'win32' ? [] : ['/dev/null']),
  ])
  expect(outcomes.map(({ name, code }) => `${name} ${code}`)).toEqual(outcomes.map(() => 'StoreError E_CANNOT_OPEN'))
  expect(outcomes.map(({ message }) => message)).toEqual([
    expect.stringContaining('symbolic links lead in a circle (ELOOP); correct the links'),
    expect.stringContaining('too long (ENAMETOOLONG); use a path of up to 500 bytes'),
    expect.stringContaining('too long (ENAMETOOLONG)'),
    expect.stringContaining('too long (ENAMETOOLONG)'),
    expect.stringContaining('is a file (ENOTDIR); correct the path'),
    expect.stringContaining('too long (ENAMETOOLONG)'),
    expect.stringContaining('to which a link leads; make it first'),
    ...(process.platform === 'win32' ? [] : [expect.stringContaining('a device, a pipe or a socket')]),
  ])
  for (const { message } of outcomes) expect(message.length).toBeLessThan(700)
  expect(readdirSync(made)).toEqual(before)
})

test('missing parent folders of a new file are created', () => {
  const made = makeFolder()
  symlinkSync(made, join(made, 'link'))
  const outcomes = openAs(undefined, [join(made, 'data', 'jobs.db'), join(made, 'link', 'a', 'b', 'jobs.db')])
  expect(outcomes).toEqual([{ name: 'opened' }, { name: 'opened' }])
  expect(readdirSync(join(made, 'data'))).toContain('jobs.db')
  expect(readdirSync(join(made, 'a', 'b'))).toContain('jobs.db')
})

test.skipIf(!isRoot || !canRunAs(NOBODY))(
  'a folder that may not be created is E_READ_ONLY, and names its parent',
  () => {
    const made = makeFolder()
    chmodSync(made, 0o755)
    const [outcome] = openAs(NOBODY, [join(made, 'data', 'jobs.db')])
    expect(outcome?.code).toBe('E_READ_ONLY')
    expect(outcome?.message).toContain(`there is no folder ${join(made, 'data')}, and ${made} is read-only`)
  },
)

describe('a store behind a symbolic link', () => {
  const WORKER = `
const noop = job('noop', async ({ n }) => say('ran', { n }))
const mill = await millrace({ store: file, jobs: [noop], logger: false, poll: '60s' })
await mill.start()
say('open')`

  test.each([
    [
      'the file',
      'links/jobs.db',
      (links: string, data: string) => symlinkSync(join(data, 'jobs.db'), join(links, 'jobs.db')),
    ],
    ['its folder', 'links/data/jobs.db', (links: string, data: string) => symlinkSync(data, join(links, 'data'))],
  ])('is shared by processes that were given the link and the path: a link to %s', async (_, link, make) => {
    const base = processes().folder
    const [data, links] = [join(base, 'data'), join(base, 'links')]
    mkdirSync(data)
    mkdirSync(links)
    // The process that was given the link creates the file, so the link is dangling at first.
    make(links, data)
    const worker = processes().run(WORKER, join(base, link))
    await worker.receives('open')
    const producer = processes().run(
      `
const mill = await millrace({ store: file, jobs: [job('noop', async () => undefined)], logger: false })
await mill.enqueue('noop', { n: 1 })
say('enqueued')`,
      join(data, 'jobs.db'),
    )
    await producer.receives('enqueued')
    await worker.receives('ran')
    expect(readdirSync(links)).toEqual([link.split('/')[1]])
    expect(readdirSync(data).toSorted((a, b) => a.localeCompare(b))).toEqual(
      expect.arrayContaining(['jobs.db', 'jobs.db-ballast', 'jobs.db-wake']),
    )
  })
})

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { afterAll, describe, expect, test } from 'vitest'
import type { ProcessReader } from './processes.js'
import { systemProcesses } from './processes.js'

const failed = (code: string): Error => Object.assign(new Error(code), { code })

/** A machine with one other process, pid 7; `change` replaces parts of it. */
function reader(change: Partial<ProcessReader> & { readonly files?: Record<string, string> } = {}): ProcessReader {
  const files: Record<string, string> = {
    '/etc/machine-id': 'aaaa\n',
    '/proc/sys/kernel/random/boot_id': 'bbbb\n',
    '/proc/5/stat': stat(5, 'node', 'R', 1_000),
    '/proc/7/stat': stat(7, 'node (odd) name)', 'S', 2_000),
    ...change.files,
  }
  const links: Record<string, string> = {
    '/proc/self': '5',
    '/proc/self/ns/pid': 'pid:[1]',
    '/proc/self/ns/time': 'time:[1]',
  }
  const lookup = (map: Record<string, string>, path: string): string => {
    const found = map[path]
    if (found === undefined) throw failed('ENOENT')
    return found
  }
  return {
    pid: 5,
    host: 'here',
    text: (path) => lookup(files, path),
    link: (path) => lookup(links, path),
    probe: (pid) => {
      if (pid !== 5 && pid !== 7) throw failed('ESRCH')
    },
    ...change,
  }
}

const stat = (pid: number, name: string, state: string, started: number): string =>
  `${pid} (${name}) ${state} 1 1 1 0 -1 4194560 1 0 0 0 1 1 0 0 20 0 11 0 ${started} 1 1 1 1 1 1`

const own = (given: ProcessReader): string => systemProcesses(given).own.identity ?? 'none'
const machine = own(reader()).split('.')[0] ?? ''

describe('a process of the same machine', () => {
  const processes = systemProcesses(reader())
  const isGone = (mark: { pid: number; identity: string }): boolean => processes.isGone(mark)

  test('that runs is not gone, whatever its name', () => {
    expect(isGone({ pid: 7, identity: `${machine}.2000` })).toBe(false)
    expect(isGone({ pid: 5, identity: `${machine}.1000` })).toBe(false)
  })

  test('is gone when its pid does not exist, is a zombie, or has another start time', () => {
    expect(isGone({ pid: 8, identity: `${machine}.2000` })).toBe(true)
    expect(isGone({ pid: 7, identity: `${machine}.1999` })).toBe(true)
    const zombie = reader({ files: { '/proc/7/stat': stat(7, 'node', 'Z', 2_000) } })
    expect(systemProcesses(zombie).isGone({ pid: 7, identity: `${machine}.2000` })).toBe(true)
  })

  test('of another user is not gone', () => {
    const guarded = reader({
      probe: () => {
        throw failed('EPERM')
      },
    })
    expect(systemProcesses(guarded).isGone({ pid: 7, identity: `${machine}.2000` })).toBe(false)
  })

  test.each(['', 'nonsense', '7 (node) S 1 1'])('whose state reads %j is not gone', (text) => {
    const hidden = reader({ files: { '/proc/7/stat': text } })
    expect(systemProcesses(hidden).isGone({ pid: 7, identity: `${machine}.1999` })).toBe(false)
  })
})

test.each([
  ['another machine-id', { files: { '/etc/machine-id': 'cccc' } }],
  ['another boot', { files: { '/proc/sys/kernel/random/boot_id': 'cccc' } }],
  ['another hostname', { host: 'there' }],
  ['another pid namespace', { link: (path: string) => (path === '/proc/self' ? '5' : path.replace('pid', 'pid:[2]')) }],
])('with %s nothing is proven, not even of a pid that does not exist', (_, change) => {
  const other = systemProcesses(reader(change))
  expect(other.own.identity).not.toBeNull()
  expect(other.isLocal({ pid: 8, identity: `${machine}.1` })).toBe(false)
  expect(other.isGone({ pid: 8, identity: `${machine}.1` })).toBe(false)
})

test.each([
  ['no machine-id', { files: { '/etc/machine-id': '\n' } }],
  ['no /proc', { link: () => { throw failed('ENOENT') } }], // prettier-ignore
  ['a /proc of another pid namespace', { link: (path: string) => (path === '/proc/self' ? '4711' : path) }],
  ['no start time of its own', { files: { '/proc/5/stat': 'x' } }],
])('a process that finds %s proves nothing, and nothing is proven of it', (_, change) => {
  const blind = systemProcesses(reader(change))
  expect(blind.own.identity).toBeNull()
  expect(blind.isGone({ pid: 8, identity: `${machine}.1` })).toBe(false)
  expect(systemProcesses(reader()).isGone({ pid: 8, identity: blind.own.identity })).toBe(false)
})

describe.skipIf(systemProcesses().own.identity === null)('on this machine', () => {
  const children: number[] = []
  afterAll(() => {
    for (const pid of children) process.kill(pid, 'SIGKILL')
  })
  const processes = systemProcesses()
  const ownMachine = processes.own.identity?.split('.')[0]
  const markOf = (pid: number): { pid: number; identity: string } => {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return { pid, identity: `${ownMachine}.${text.slice(text.lastIndexOf(')') + 2).split(' ')[19]}` }
  }

  test('this process lives, and so does a child until it is killed', async () => {
    expect(processes.isGone(processes.own)).toBe(false)
    const child = spawn('sleep', ['60'])
    const mark = markOf(child.pid as number)
    expect(processes.isGone(mark)).toBe(false)
    child.kill('SIGKILL')
    await once(child, 'exit')
    expect(processes.isGone(mark)).toBe(true)
  })

  test('a zombie is gone', async () => {
    // The shell starts a child and then becomes a program that never waits for its children.
    const parent = spawn('sh', ['-c', 'sleep 60 & echo $!; exec sleep 60'], { stdio: ['ignore', 'pipe', 'ignore'] })
    children.push(parent.pid as number)
    const [line] = (await once(createInterface({ input: parent.stdout }), 'line')) as [string]
    const mark = markOf(Number(line))
    expect(processes.isGone(mark)).toBe(false)
    await expect.poll(() => readFileSync(`/proc/${parent.pid}/stat`, 'utf8')).toContain('(sleep)')
    process.kill(mark.pid, 'SIGKILL')
    await expect.poll(() => processes.isGone(mark)).toBe(true)
    expect(readFileSync(`/proc/${mark.pid}/stat`, 'utf8')).toMatch(/\) Z /)
  })
})

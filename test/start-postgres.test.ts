import { chmodSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { urlInBundle } from '../scripts/bundle.mjs'
import { useProcesses } from './processes/child.js'
import type { Child } from './processes/child.js'

/** A server for tests never outlives the process that started it, however that ends. */
const processes = useProcesses()

const TESTING = urlInBundle('testing/index.js')

/** A process that starts a server in a temporary folder of its own, and then goes on with `then`. */
function starts(then: string, awaited = 'await '): { child: Child; temporary: string } {
  const temporary = mkdtempSync(join(tmpdir(), 'millrace-fixture-'))
  onTestFinished(() => rmSync(temporary, { recursive: true, force: true }))
  chmodSync(temporary, 0o755) // As root the server is another user, who must be able to reach it.
  const child = processes().run(`
    process.env.TMPDIR = ${JSON.stringify(temporary)}
    const { readdirSync, readFileSync } = await import('node:fs')
    const { startPostgres } = await import(${JSON.stringify(TESTING)})
    const server = ${awaited}startPostgres({ settings: { fsync: 'off' } })
    const [folder] = readdirSync(process.env.TMPDIR)
    const pid = ${awaited === '' ? '0' : "Number(readFileSync(process.env.TMPDIR + '/' + folder + '/data/postmaster.pid', 'utf8').split('\\n')[0])"}
    say('started', { pid, folder })
    ${then}`)
  return { child, temporary }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false // No process has that id any more.
  }
}

describe('a server that no test stopped ends, and its folder is removed', () => {
  const waits = 'setInterval(() => {}, 1_000)'
  test.each<[string, string, NodeJS.Signals | undefined, number | string]>([
    ['has nothing left to do', '', undefined, 0],
    ['exits', 'process.exit(3)', undefined, 3],
    ['throws', "setTimeout(() => { throw new Error('as tests do') })", undefined, 1],
    ['is interrupted', waits, 'SIGINT', 'SIGINT'],
    ['is told to end', waits, 'SIGTERM', 'SIGTERM'],
    ['is killed with -9', waits, 'SIGKILL', 'SIGKILL'],
  ])('when its process %s', async (_, then, signal, ending) => {
    const { child, temporary } = starts(then)
    const pid = (await child.receives('started'))['pid'] as number
    expect(pid).toBeGreaterThan(1)
    if (signal !== undefined) child.process.kill(signal)
    expect(await child.exited).toBe(ending)
    await expect.poll(() => readdirSync(temporary), { timeout: 30_000 }).toEqual([])
    expect(isAlive(pid)).toBe(false)
  })

  test('when its process is killed while it is being made', async () => {
    const { child, temporary } = starts(waits, '')
    expect((await child.receives('started'))['folder']).toMatch(/^millrace-postgres-/)
    await child.kill()
    await expect.poll(() => readdirSync(temporary), { timeout: 30_000 }).toEqual([])
  })
})

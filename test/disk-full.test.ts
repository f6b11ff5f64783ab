import { spawnSync } from 'node:child_process'
import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { useProcesses } from './processes/child.js'

/** A disk of sixteen megabytes: a small file system in memory, where this machine allows to mount one. */
const disk = mkdtempSync(join(tmpdir(), 'millrace-disk-'))
const mounted =
  process.platform === 'linux' && spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=16m', 'tmpfs', disk]).status === 0
const processes = useProcesses()

afterAll(() => {
  if (mounted) spawnSync('umount', [disk])
  rmSync(disk, { recursive: true, force: true })
})

// Skipped where no file system can be mounted: that needs root on Linux.
test.skipIf(!mounted)(
  'a full disk is a typed error, what ran is recorded, and work resumes by itself',
  { timeout: 90_000 },
  async () => {
    const filler = join(disk, 'filler')
    const program = `
    import { rmSync } from 'node:fs'
    let finish
    const slow = job('slow', async () => { say('running'); await new Promise((go) => (finish = go)); return 'kept' })
    const small = job('small', async (p) => p.n)
    const mill = await millrace({ store: file, jobs: { slow, small }, logger: false, poll: '100ms' })
    await mill.start()
    const handle = await mill.enqueue(slow)
    while (finish === undefined) await new Promise((next) => setTimeout(next, 5))
    say('fill')
    const acknowledged = []
    let refused
    for (let n = 0; refused === undefined && n < 10_000; n += 1)
      try { acknowledged.push((await mill.enqueue(small, { n, pad: 'x'.repeat(4_000) }, { in: '1h' })).id) } catch (error) { refused = error }
    say('refused', { code: refused?.code, name: refused?.name, acknowledged: acknowledged.length })
    finish()
    say('recorded', { result: await handle.result({ timeout: '20s' }) })
    rmSync(${JSON.stringify(filler)})
    let first
    for (let tries = 0; first === undefined && tries < 200; tries += 1)
      try { first = await mill.enqueue(small, { n: 'after' }) } catch { await new Promise((next) => setTimeout(next, 100)) }
    say('resumed', { result: await first.result({ timeout: '20s' }) })
    let found = 0
    for (const id of acknowledged) if ((await mill.get(id))?.state === 'scheduled') found += 1
    say('found', { found })
    await mill.close()`
    writeFileSync(filler, Buffer.alloc(6 * 1024 * 1024, 1))
    const child = processes().run(program, join(disk, 'jobs.db'))
    const refused = await child.receives('refused')
    expect(refused).toMatchObject({ code: 'E_STORE_FULL', name: 'StoreFullError' })
    expect(refused['acknowledged']).toBeGreaterThan(0)
    expect(await child.receives('recorded')).toMatchObject({ result: 'kept' })
    expect(await child.receives('resumed')).toMatchObject({ result: 'after' })
    expect((await child.receives('found'))['found']).toBe(refused['acknowledged'])
    expect(await child.exited).toBe(0)
  },
)

test.skipIf(!mounted)(
  'opening a store on a full disk fails with an error that says so',
  { timeout: 60_000 },
  async () => {
    const filler = join(disk, 'filler')
    writeFileSync(filler, '')
    // The file system rounds to pages: the last write takes what is left.
    for (const bytes of [1_048_576, 4_096])
      for (let full = false; !full;)
        try {
          appendFileSync(filler, Buffer.alloc(bytes, 1))
        } catch {
          full = true
        }
    const program = `
    const refused = await millrace({ store: file, logger: false }).catch((error) => error)
    say('refused', { code: refused.code, message: refused.message })`
    const child = processes().run(program, join(disk, 'late.db'))
    const refused = await child.receives('refused')
    await child.exited
    rmSync(filler)
    expect(refused).toMatchObject({
      code: 'E_STORE_FULL',
      message: expect.stringMatching(
        /late\.db: no space is left on the disk; the store was not opened\. Free some space, and open it/,
      ),
    })
  },
)

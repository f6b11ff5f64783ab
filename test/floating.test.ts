import { expect, test } from 'vitest'
import { useProcesses } from './processes/child.js'

/** A job that has ended can still end the process, by a rejection that no code awaits. The job that is running then is not charged. */
const processes = useProcesses()

/**
 * `leaves` ends and leaves a promise behind. `innocent` makes it reject once the ends of so many jobs `leaves` are written: whichever
 * of the two a worker begins first, `leaves` is over then, and it ran in this process.
 */
const program = (ends: number | null): string => `
let fail
const leaves = job('leaves', async () => { void new Promise((_, reject) => (fail = reject)) })
const innocent = job('innocent', async () => {
  say('began')
  if (${String(ends)} === null) return 'ran'
  while ((await mill.count({ job: 'leaves', state: 'done' })).count < ${String(ends)})
    await new Promise((resolve) => setTimeout(resolve, 20))
  fail(new Error('left behind'))
  await new Promise(() => undefined)
})
const mill = await millrace({
  store: file, jobs: { leaves, innocent }, logger: false, lease: '2s', concurrency: 2,
})
`

test('a job is not charged with the floating rejection of the job before it', { timeout: 180_000 }, async () => {
  const first = processes().run(`${program(1)}
    await mill.enqueue(leaves, {})
    await mill.enqueue(innocent, {})
    await mill.start()`)
  await first.receives('began', 60_000)
  expect(await first.exited).toBe(1)
  // Once more, with another job that leaves a promise behind: the innocent one is in flight at two crashes in a row.
  const second = processes().run(`${program(2)}
    await mill.enqueue(leaves, {})
    await mill.start()`)
  await second.receives('began', 60_000)
  expect(await second.exited).toBe(1)
  const third = processes().run(`${program(null)}
    await mill.start()
    for await (const found of mill.find({ job: 'innocent' })) await mill.handle(found.id).result({ timeout: '30s' })
    const all = []
    for await (const found of mill.find()) all.push({ job: found.job, state: found.state, crashes: found.crashes })
    say('all', { all })
    await mill.close()`)
  const { all } = (await third.receives('all', 60_000)) as unknown as {
    all: { job: string; state: string; crashes: number }[]
  }
  expect(all.filter(({ job }) => job === 'innocent')).toEqual([{ job: 'innocent', state: 'done', crashes: 0 }])
  for (const each of all) expect(each.crashes).toBe(0)
  expect(await third.exited).toBe(0)
})

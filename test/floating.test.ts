import { expect, test } from 'vitest'
import { useProcesses } from './processes/child.js'

/** Errors that are thrown outside of a handler, where it cannot catch them, on the event loop. */
const processes = useProcesses()

const program = (more: string): string => `
const lines = []
// Lines with an error: the test server's warning about its settings has none.
const write = (fields, text) => void (fields.err && lines.push(text + ': ' + fields.err.message))
const logger = { debug() {}, info() {}, warn: write, error: write }
const later = (ms) => new Promise((next) => setTimeout(next, ms))
let fail = () => undefined
const jobs = {
  leaves: job('leaves', async () => { void new Promise((_, reject) => (fail = reject)) }),
  innocent: job('innocent', async () => { fail(new Error('left behind')); await later(100); return 'ran' }),
  floating: job('floating', async () => { void Promise.reject(new Error('floating')); await later(100) }),
  timer: job('timer', async () => { setTimeout(() => { throw new Error('in a timer') }, 5); await new Promise(() => undefined) }),
  microtask: job('microtask', async () => { queueMicrotask(() => { throw new Error('in a microtask') }); await later(1000) }),
}
const mill = await millrace({ store: file, jobs, logger, concurrency: 1, retry: { limit: 0 } })
const enqueue = (name) => mill.enqueue(name, undefined)
const shown = async (handle) => {
  const { job, state, attempt, crashes, error } = await handle.get()
  return { job, state, attempt, crashes, error: error?.message }
}
${more}`

test('the floating error of an attempt fails that attempt, and the process lives', { timeout: 60_000 }, async () => {
  const child = processes().run(
    program(`
    const handles = [await enqueue('floating'), await enqueue('timer')]
    await mill.start()
    for (const handle of handles) await handle.result({ timeout: '20s' }).catch(() => undefined)
    say('all', { all: await Promise.all(handles.map(shown)) })
    await mill.close({ deadline: 0 })`),
  )
  const { all } = await child.receives('all', 30_000)
  expect(all).toEqual([
    { job: 'floating', state: 'failed', attempt: 1, crashes: 0, error: 'floating' },
    { job: 'timer', state: 'failed', attempt: 1, crashes: 0, error: 'in a timer' },
  ])
  expect(await child.exited).toBe(0)
})

test('what an ended attempt leaves behind is logged, and charged to no job', { timeout: 60_000 }, async () => {
  const child = processes().run(
    program(`
    await mill.start()
    const handles = []
    for (const name of ['leaves', 'innocent']) {
      handles.push(await enqueue(name))
      await handles.at(-1).result({ timeout: '20s' })
    }
    say('all', { all: await Promise.all(handles.map(shown)), lines })
    await mill.close()`),
  )
  const { all, lines } = await child.receives('all', 30_000)
  expect(all).toMatchObject([{ state: 'done' }, { state: 'done', attempt: 1, crashes: 0 }])
  expect(lines).toEqual([expect.stringMatching(/^leaves left an error behind .*: left behind$/)])
  expect(await child.exited).toBe(0)
})

test('an error without an attempt is reported and ends the process as Node does', { timeout: 60_000 }, async () => {
  const child = processes().run(
    program(`
    process.on('exit', () => say('lines', { lines }))
    await enqueue('microtask')
    await mill.start()`),
  )
  const { lines } = await child.receives('lines', 30_000)
  expect(lines).toEqual(['an uncaught error belongs to no job; it ends this process: in a microtask'])
  expect(await child.exited).toBe(1)
})

test(
  'the listener of the application comes first, and decides about an error without an attempt',
  { timeout: 60_000 },
  async () => {
    const child = processes().run(
      program(`
    const order = []
    const handles = [await enqueue('floating'), await enqueue('microtask')]
    await mill.start()
    process.on('uncaughtException', async (error) => order.push([error.message, (await handles[0].get()).state === 'failed']))
    for (const handle of handles) await handle.result({ timeout: '20s' }).catch(() => undefined)
    say('all', { all: await Promise.all(handles.map(shown)), order, lines })
    await mill.close({ deadline: 0 })`),
    )
    const { all, order } = await child.receives('all', 30_000)
    expect(all).toMatchObject([
      { state: 'failed', error: 'floating' },
      { job: 'microtask', state: 'done' },
    ])
    expect((order as unknown[][]).map(([message]) => message)).toEqual(['floating', 'in a microtask'])
    expect(await child.exited).toBe(0)
  },
)

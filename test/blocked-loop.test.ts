import { describe, expect, test } from 'vitest'
import { urlInBundle } from '../scripts/bundle.mjs'
import { useProcesses } from './processes/child.js'

/** X8 on real processes: a handler that blocks the event loop past its timeout and grace, beside a healthy worker. */
const processes = useProcesses()

const url = (path: string): string => JSON.stringify(urlInBundle(path))

/** A mill built from its parts, because the grace of 30 s is no option. `block` blocks once, in the process with `blocks`. */
const program = (extra: string, { blocks = false, graceMs = 500, timeout = `'500ms'` } = {}): string => `
  const { buildMill } = await import(${url('mill.js')})
  const { systemWorld } = await import(${url('world/world.js')})
  const { postgres } = await import(${url('postgres.js')})
  function neverYields() { for (;;); }
  const spin = job('spin', { run: async () => {
    say('spins')
    await null
    ${blocks ? 'neverYields()' : ''}
  }, timeout: ${timeout} })
  const native = job('native', { run: async () => {
    const { execFileSync } = await import('node:child_process')
    say('native')
    ${blocks ? `execFileSync('sleep', ['60'])` : ''}
  }, timeout: ${timeout} })
  const slow = job('slow', { run: async () => { say('slow'); await new Promise((next) => setTimeout(next, ${blocks ? 60_000 : 10})) }, timeout: '1m' })
  const mill = await buildMill({ jobs: { spin, native, slow }, logger: false, lease: '1s', poll: '100ms' },
    { world: systemWorld(), store: file.startsWith('postgres') ? postgres(file) : sqlite(file), blockGraceMs: ${graceMs} })
  ${extra}`

const results = `
  const ended = []
  for await (const found of mill.find({ order: 'oldest' })) {
    await mill.handle(found.id).result({ timeout: '30s' })
    const { job, state, crashes, attempts } = await mill.get(found.id)
    ended.push({ job, state, crashes, exits: attempts.map((a) => a.exit ?? null) })
  }
  say('ended', { ended })`

describe('a handler that blocks the event loop', () => {
  test(
    'past its timeout and grace loses its jobs to another worker, and is reported with its stack',
    { timeout: 60_000 },
    async () => {
      const blocked = processes().run(
        program(`await mill.enqueue(slow); await mill.enqueue(spin); await mill.start()`, { blocks: true }),
      )
      await blocked.receives('spins')
      const healthy = processes().run(program(`await mill.start(); say('up'); ${results}`))
      const { ended } = await healthy.receives('ended', 45_000)
      // The blocking job is a suspect at once, the other is not; neither is charged.
      expect(ended).toMatchObject([
        { job: 'slow', state: 'done', crashes: 0, exits: ['crashed', null] },
        { job: 'spin', state: 'done', crashes: 0, exits: ['crashed', null] },
      ])
      expect(blocked.errors).toMatch(
        /error worker \S+: its event loop was blocked for \d+ s by job spin \S+, longer than/,
      )
      expect(blocked.errors).toContain('at neverYields')
    },
  )

  test(
    'in a native call has no stack to report, and the longest timeout in flight counts',
    { timeout: 60_000 },
    async () => {
      const blocked = processes().run(program(`await mill.enqueue(native); await mill.start()`, { blocks: true }))
      await blocked.receives('native')
      const healthy = processes().run(program(`await mill.start(); ${results}`))
      const { ended } = await healthy.receives('ended', 45_000)
      expect(ended).toMatchObject([{ job: 'native', state: 'done', crashes: 0 }])
      expect(blocked.errors).toContain('by a call that gives no stack')
    },
  )

  test.for([
    ['for less than its timeout and grace', { graceMs: 60_000 }],
    ['with no timeout', { timeout: 'Infinity' }],
  ] as const)('%s keeps its jobs', { timeout: 60_000 }, async ([, options]) => {
    const blocked = processes().run(
      program(`await mill.enqueue(spin); await mill.start()`, { blocks: true, ...options }),
    )
    await blocked.receives('spins')
    const healthy = processes().run(
      program(`await mill.start(); say('up')
      await new Promise((next) => setTimeout(next, 4_000))
      for await (const found of mill.find()) say('found', { state: found.state })`),
    )
    expect(await healthy.receives('found')).toMatchObject({ state: 'running' })
    expect(blocked.errors).toBe('')
  })
})

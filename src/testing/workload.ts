import { job } from '../job/define.js'
import type { AnyJob } from '../job/define.js'
import { Abort, Snooze } from '../job/signals.js'
import { MillraceError } from '../errors.js'
import type { EnqueueOptions, Handle } from '../job/enqueue.js'
import type { Mill } from '../mill/surface.js'
import type { Random } from './random.js'
import type { SimProcess } from './sim-process.js'
import type { Simulation } from './simulation.js'

/**
 * What the campaign's fleet does: jobs that are steady, flaky, doomed, quitting, dozing, rare and poisonous, and a client that
 * enqueues, schedules, cancels, retries, edits and deletes them at random. All of it through the front door.
 */
export function workloadJobs(sim: Simulation, process: SimProcess, dozed: Map<string, number>): AnyJob[] {
  const wait = (ms: number): Promise<void> => sim.wait(process, ms)
  const steady = job('steady', async (p: { ms: number; n: number }, ctx) => {
    ctx.progress(1, 2)
    await wait(p.ms)
    return p.n
  })
  const flaky = job('flaky', {
    run: async (p: { ms: number; fails: number }, ctx) => {
      await wait(p.ms)
      if (ctx.attempt <= p.fails) throw new Error(`attempt ${ctx.attempt} fails`)
    },
    retry: { limit: 8, backoff: { start: 200, max: 2_000 } },
  })
  const doomed = job('doomed', {
    run: async (p: { ms: number }) => {
      await wait(p.ms)
      throw new Error('always')
    },
    retry: { limit: 2, backoff: { start: 100 } },
  })
  const quitter = job('quitter', async () => {
    throw new Abort('no use')
  })
  const dozer = job('dozer', async (p: { times: number }, ctx) => {
    const times = dozed.get(ctx.id) ?? 0
    dozed.set(ctx.id, times + 1)
    if (times < p.times) throw new Snooze('400ms')
  })
  const parent = job('parent', async (p: { ms: number }, ctx) => {
    await wait(p.ms)
    const child = await ctx.enqueue(steady, { ms: 10, n: 0 })
    sim.acknowledged.add(child.id)
  })
  const rare = job('rare', async (p: { ms: number }) => wait(p.ms))
  const pill = job('pill', {
    run: async (p: { kills: number }, ctx) => {
      await wait(5)
      if (sim.book.runsOf(ctx.id).length <= p.kills) await sim.kill(process)
    },
  })
  const shared = [steady, flaky, doomed, quitter, dozer, parent, pill] as AnyJob[]
  return process.name === 'worker-1' || process.name === 'client' ? [...shared, rare as AnyJob] : shared
}

/** What the client does: `steps` random things, with pauses between them. */
export async function tellStory(sim: Simulation, mill: Mill, client: SimProcess, steps: number): Promise<void> {
  const random = sim.random('story')
  const known: string[] = []
  for (let i = 0; i < steps; i += 1) {
    await attempt(() => step(sim, mill, random, known), sim)
    if (random.chance(0.6)) await sim.wait(client, random.next() * 900)
  }
}

/** The store may fail at any call; the story goes on, as a caller would after logging it. */
async function attempt(work: () => Promise<void>, sim: Simulation): Promise<void> {
  try {
    await work()
  } catch (error) {
    if (!(error instanceof MillraceError)) throw error
    sim.count(`refused: ${error.code}`)
  }
}

async function step(sim: Simulation, mill: Mill, random: Random, known: string[]): Promise<void> {
  const dice = random.int(0, 99)
  if (dice < 55) return enqueue(sim, mill, random, known)
  if (dice < 63) return schedule(sim, mill, random, known)
  if (dice < 70) return enqueueMany(sim, mill, random, known)
  if (known.length === 0) return
  const id = random.pick(known)
  if (dice < 80) return cancel(sim, mill, id)
  if (dice < 88) return retry(sim, mill, id)
  if (dice < 93) return edit(sim, mill, id, random)
  if (dice < 96) return forget(sim, mill, id)
  if (await mill.unschedule('steady', `key-${random.int(1, 3)}`)) sim.count('unscheduled')
}

function anyJob(random: Random): [string, object] {
  const ms = random.chance(0.5) ? random.int(0, 20) : random.int(100, 4_000)
  const dice = random.int(0, 99)
  if (dice < 45) return ['steady', { ms, n: dice }]
  if (dice < 62) return ['flaky', { ms: Math.min(ms, 300), fails: random.int(1, 4) }]
  if (dice < 70) return ['doomed', { ms: Math.min(ms, 300) }]
  if (dice < 75) return ['quitter', {}]
  if (dice < 82) return ['dozer', { times: random.int(1, 3) }]
  if (dice < 89) return ['parent', { ms: Math.min(ms, 500) }]
  if (dice < 96) return ['rare', { ms: Math.min(ms, 500) }]
  return ['pill', { kills: random.pick([1, 2, 99]) }]
}

async function enqueue(sim: Simulation, mill: Mill, random: Random, known: string[]): Promise<void> {
  const [name, payload] = anyJob(random)
  const before = sim.time.now
  const delay = random.chance(0.2) ? random.int(1, 5_000) : 0
  const keyed = name === 'steady' && random.chance(0.35)
  const options: EnqueueOptions = {
    ...(delay > 0 ? { in: delay } : {}),
    ...(random.chance(0.2) ? { priority: random.int(-2, 2) } : {}),
    ...(random.chance(0.15) ? { queue: random.pick(['mail', 'slow']) } : {}),
    ...(random.chance(0.08) ? { expires: random.int(1, 3_000) } : {}),
    ...(keyed
      ? { key: `key-${random.int(1, 3)}`, onDuplicate: random.pick(['return', 'reject', 'replace'] as const) }
      : {}),
  }
  const handle = await mill.enqueue(name, payload, options)
  noteEnqueued(sim, handle, known)
  sim.note('client', `enqueued ${name}${handle.isNew ? '' : ' (held key)'}`)
  if (!handle.isNew) sim.count('duplicates returned')
  else if (delay > 0) sim.book.notBefore(handle.id, Math.floor(before) + delay)
}

async function schedule(sim: Simulation, mill: Mill, random: Random, known: string[]): Promise<void> {
  const handle = await mill.schedule('steady', { ms: 5, n: 1 }, random.int(1, 6_000), {
    key: `key-${random.int(1, 3)}`,
  })
  noteEnqueued(sim, handle, known)
  sim.book.notBefore(handle.id, 0)
  sim.count(handle.isNew ? 'scheduled' : 'moved')
}

async function enqueueMany(sim: Simulation, mill: Mill, random: Random, known: string[]): Promise<void> {
  const payloads = Array.from({ length: random.int(2, 15) }, (_, n) => ({ ms: random.int(0, 200), n }))
  for (const handle of await mill.enqueueMany('steady', payloads)) noteEnqueued(sim, handle, known)
  sim.count('bulks')
}

function noteEnqueued(sim: Simulation, handle: Handle<unknown>, known: string[]): void {
  sim.acknowledged.add(handle.id)
  known.push(handle.id)
}

async function cancel(sim: Simulation, mill: Mill, id: string): Promise<void> {
  if (!(await mill.cancel(id))) return
  sim.count('cancelled')
  sim.book.cancelled(id, sim.time.now)
}

async function retry(sim: Simulation, mill: Mill, id: string): Promise<void> {
  sim.revivals.set(id, (sim.revivals.get(id) ?? 0) + 1)
  sim.book.allow(id)
  if (await mill.retry(id)) sim.count('retried by command')
}

async function edit(sim: Simulation, mill: Mill, id: string, random: Random): Promise<void> {
  sim.book.notBefore(id, 0)
  if (await mill.edit(id, { priority: random.int(-1, 3), ...(random.chance(0.5) ? { in: random.int(1, 2_000) } : {}) }))
    sim.count('edited')
}

async function forget(sim: Simulation, mill: Mill, id: string): Promise<void> {
  sim.forgettable.add(id)
  if (await mill.delete(id)) sim.count('deleted')
}

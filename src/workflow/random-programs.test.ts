import { expect, test } from 'vitest'
import { DrivenWorkflow } from '../../test/support/driven-workflow.js'
import type { DrivenOptions } from '../../test/support/driven-workflow.js'
import { seeded } from '../testing/simulation/random.js'
import type { AnyJob } from '../job/definition/define.js'
import type { RunEnd } from './host.js'
import { event, workflow } from './define.js'
import type { Work } from './work.js'

/** Bodies of random shape, killed and cancelled at random: whatever was recorded, a replay of it takes the same path. */

const SEEDS = 200
const go = event<number>('go')

type Plan =
  | { readonly kind: 'step'; readonly name: string; readonly ms: number; readonly fails: number }
  | { readonly kind: 'tx' | 'sleep' | 'wait' | 'call' | 'enqueue'; readonly ms: number }
  | {
      readonly kind: 'row' | 'all' | 'race' | 'plain-all' | 'plain-race' | 'each' | 'cleanup'
      readonly parts: readonly Plan[]
    }

interface Draw {
  readonly below: (n: number) => number
}

function planOf(draw: Draw, depth: number): Plan {
  const ms = [0, 10, 100, 400, 5_000][draw.below(5)] as number
  const leaf = draw.below(10)
  if (depth === 0 || leaf < 5) {
    if (leaf < 3)
      return { kind: 'step', name: `s${draw.below(2)}`, ms: ms % 5_000, fails: draw.below(4) === 0 ? draw.below(4) : 0 }
    return { kind: (['tx', 'sleep', 'wait', 'call', 'enqueue'] as const)[draw.below(5)] as 'tx', ms }
  }
  const kind = (['row', 'row', 'all', 'race', 'plain-all', 'plain-race', 'each', 'cleanup'] as const)[
    draw.below(8)
  ] as 'row'
  return { kind, parts: Array.from({ length: 1 + draw.below(3) }, () => planOf(draw, depth - 1)) }
}

/** Every value and every error is noted, in the order in which the body sees them. */
async function follow(plan: Plan, w: Work, trace: string[], of: () => DrivenWorkflow, acts: string[]): Promise<void> {
  const note = (what: string): void => void trace.push(`${what} ${w.steps} ${w.now().getTime()} ${w.random()}`)
  const inner = (part: Plan) => (one: Work) => follow(part, one, trace, of, acts)
  try {
    switch (plan.kind) {
      case 'step':
        note(
          await w.step(plan.name, { retry: { limit: 2, jitter: 0 } }, async (s) => {
            acts.push(s.id)
            await of().after(plan.ms)
            if (s.attempt <= plan.fails) throw new Error('planned')
            return `${s.id} ${s.attempt}`
          }),
        )
        break
      case 'tx':
        note(await w.transaction('t', async () => { acts.push('tx'); await of().after(plan.ms); return 'tx' })) // prettier-ignore
        break
      case 'sleep':
        note(String(await w.sleep(plan.ms)))
        break
      case 'wait':
        note(String(await w.waitFor(go, { timeout: 1 + plan.ms })))
        break
      case 'call':
        note(String(await w.call('child' as never, plan.ms as never)))
        break
      case 'enqueue':
        note((await w.enqueue('other' as never, 1 as never)).id)
        break
      case 'row':
        for (const part of plan.parts) await inner(part)(w)
        break
      case 'all':
        note(String((await w.all(plan.parts.map(inner))).length))
        break
      case 'race':
        note((await w.race(Object.fromEntries(plan.parts.map((part, i) => [`b${i}`, inner(part)])))).won as string)
        break
      case 'each':
        await w.each('e', plan.parts, (part, one) => inner(part)(one), { concurrency: 2 })
        break
      case 'plain-all':
        await Promise.all(plan.parts.map((part) => inner(part)(w)))
        break
      case 'plain-race':
        await Promise.race(plan.parts.map((part) => inner(part)(w)))
        note('raced')
        break
      case 'cleanup':
        await w.cleanup((one) => follow({ kind: 'row', parts: plan.parts }, one, trace, of, acts))
        break
      default:
        plan satisfies never
    }
  } catch (error) {
    note(`threw ${(error as { code?: string }).code}`)
    if (plan.kind === 'all' || plan.kind === 'step') throw error
  }
}

function make(plan: Plan, options: DrivenOptions, acts: string[]): DrivenWorkflow {
  const made: DrivenWorkflow[] = []
  const of = (): DrivenWorkflow => made[0] as DrivenWorkflow
  const job = workflow('w', async (_: never, w: Work) => {
    const trace: string[] = []
    await follow(plan, w, trace, of, acts).catch((error: { code?: string }) => trace.push(`ended ${error.code}`))
    return trace
  })
  made.push(new DrivenWorkflow(job as AnyJob, options))
  return of()
}

function traceOf(end: RunEnd): unknown {
  if (end.kind === 'done' || end.kind === 'cancelled') return [end.kind, end.value]
  throw new Error(`it ended ${JSON.stringify(end)}`)
}

test(
  'what random bodies have recorded replays to the same path, whenever they were killed or cancelled',
  { timeout: 60_000 },
  async () => {
    for (let seed = 0; seed < SEEDS; seed += 1) {
      const random = seeded(1_000 + seed)
      const draw = { below: (n: number) => Math.floor(random.next() * n) }
      const plan: Plan = { kind: 'row', parts: [planOf(draw, 3), planOf(draw, 3)] }
      const options: DrivenOptions = {
        killAt: draw.below(3) === 0 ? undefined : draw.below(14),
        killsAfterCommit: draw.below(2) === 0,
        sticky: draw.below(2) === 0,
        onRow: ({ address, kind, no }, d) => {
          if (kind !== 'call' || no !== null) return
          d.time.at(d.time.now + draw.below(900), () => {
            const child = d.children.find((one) => one.address === address)
            if (child !== undefined) d.endChild(child.id, address)
          })
        },
      }
      const d = make(plan, options, [])
      for (let i = 0; i < 4; i += 1) d.time.at(d.time.now + draw.below(3_000), () => d.send('go', i))
      if (draw.below(3) === 0) d.time.at(d.time.now + draw.below(2_000), () => d.cancel())
      const where = `seed ${seed}: ${JSON.stringify(plan)}`
      const end = await d.toEnd().catch((error: Error) => expect.unreachable(`${error.message}; ${where}`))
      const trace = traceOf(end as RunEnd)
      const acts: string[] = []
      const again = make(plan, {}, acts)
      for (const [address, row] of d.rows) again.rows.set(address, row)
      expect(traceOf(await again.toEnd()), where).toEqual(trace)
      expect(acts, where).toEqual([])
      const numbers = [...d.rows.values()].flatMap(({ no }) => (no === null ? [] : [no])).toSorted((a, b) => a - b)
      expect(numbers, where).toEqual(numbers.map((_, i) => i))
    }
  },
)

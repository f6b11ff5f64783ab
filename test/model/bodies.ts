import { Abort, event, Snooze, workflow } from '../../src/index.js'
import type { AnyJob } from '../../src/job/definition/define.js'
import type { StepContext, Work } from '../../src/workflow/work.js'
import type { Body, Deed, Statement } from './reference/course.js'
import { BACKOFF_MS, RETRY_LIMIT, WORKFLOW } from './reference/state.js'
import { SNOOZE_MS } from './reference/workflows.js'
import type { HeldEnd } from './reference/workflows.js'

/** The events that a workflow waits for. */
export const EVENTS = { x: event('x'), y: event('y') } as const
export type EventName = keyof typeof EVENTS

/** Steps that act until a command ends them, by the ids of their workflows and their addresses. */
export type HeldSteps = Map<string, (end: HeldEnd) => void>

/** The workflow of every program: its code is its input. `began`: a worker calls the code, for the first time or for a replay. */
export function workflowOf(held: HeldSteps, began: (id: string) => void): AnyJob {
  return workflow(WORKFLOW, {
    run: async (body: Body, w: Work<Body>) => {
      began(w.id)
      await play(body, w as Work, held)
      if (w.run === 0 && body.at?.(-1)?.verb === 'restart') return w.restart(body)
      return undefined
    },
    retry: { limit: RETRY_LIMIT, backoff: { start: BACKOFF_MS, factor: 1 }, jitter: 0 },
    timeout: Infinity,
  }) as AnyJob
}

async function play(body: Body, w: Work, held: HeldSteps): Promise<void> {
  // The input of a workflow that was enqueued without code is an object.
  for (const statement of Array.isArray(body) ? (body as Body) : []) await playOne(statement, w, held)
}

async function playOne(statement: Statement, w: Work, held: HeldSteps): Promise<unknown> {
  const branch = (body: Body) => (one: Work) => play(body, one, held)
  switch (statement.verb) {
    case 'all':
      return w.all(statement.branches.map(branch))
    case 'each':
      return w.each('e', statement.branches, (body, one) => play(body, one, held))
    case 'race':
      return w.race(Object.fromEntries(statement.branches.map((body, i) => [`b${i}`, branch(body)])))
    case 'try':
      return play(statement.body, w, held).catch(() => undefined)
    case 'cleanup':
      try {
        return await play(statement.body, w, held)
      } finally {
        await w.cleanup(branch(statement.undo))
      }
    case 'version':
      return w.version('v') === 1 ? play(statement.body, w, held) : undefined
    case 'throw':
      throw new Error('planned')
    case 'restart':
      return undefined
    case 'step':
    case 'sleep':
    case 'wait':
    case 'call':
    case 'enqueue':
      return call(statement, w, held)
  }
}

function call(deed: Deed, w: Work, held: HeldSteps): Promise<unknown> {
  switch (deed.verb) {
    case 'step':
      return w.step('s', (s) => act(deed, s, held))
    case 'sleep':
      return w.sleep(deed.ms)
    case 'wait':
      return w.waitFor(EVENTS[deed.event as EventName], deed.ms === null ? {} : { timeout: deed.ms })
    case 'call':
    case 'enqueue': {
      const options = {
        ...(deed.key === null ? {} : { key: deed.key }),
        ...(deed.inMs === 0 ? {} : { in: deed.inMs }),
        ...(deed.verb === 'call' && deed.leaves ? { onCancel: 'leave' } : {}),
      }
      return w[deed.verb](deed.name as never, (deed.body ?? {}) as never, options)
    }
    default:
      return deed satisfies never
  }
}

function act({ ends }: Extract<Deed, { verb: 'step' }>, s: StepContext, held: HeldSteps): unknown {
  if (ends !== 'held') return end(ends[Math.min(s.attempt, ends.length) - 1] as HeldEnd)
  const address = `${s.workflow} ${s.id.slice(s.id.indexOf('/'))}`
  return new Promise((resolve, reject) => {
    held.set(address, (how) => {
      held.delete(address)
      try {
        resolve(end(how))
      } catch (error) {
        reject(error as Error)
      }
    })
  })
}

function end(how: HeldEnd): number {
  if (how === 'return') return 1
  throw how === 'throw' ? new Error('planned') : how === 'abort' ? new Abort('planned') : new Snooze(SNOOZE_MS)
}

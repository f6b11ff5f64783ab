import type { Mill } from '../../src/index.js'
import type { KnownIds } from './compare.js'
import { enqueue, enqueueMany, flow, schedule } from './reference/enqueue.js'
import { seal } from './reference/groups.js'
import { makeSequence } from './reference/sequences.js'
import type { Enqueue, Model } from './reference/state.js'
import type { Given, InsertStep, Node } from './steps.js'

interface Parts {
  readonly model: Model
  readonly ids: KnownIds
  readonly mill: Mill | undefined
}

/** A verb that inserts, in the model and in a mill: alone, or in a transaction of the caller. */
export interface Insert {
  readonly inModel: () => unknown
  readonly inMill: (tx: unknown) => unknown
}

export function insertOf(step: InsertStep, parts: Parts): Insert {
  const { model, mill } = parts as Parts & { readonly mill: Mill }
  switch (step.step) {
    case 'enqueue':
    case 'workflow': {
      const { name, ...given } = withParents(step.given, parts)
      return {
        inModel: () => [enqueue(model, name, given)],
        inMill: (tx) => one(mill.enqueue(name, inputOf(given), { ...millOptions(given, parts), tx } as object)),
      }
    }
    case 'schedule': {
      const { key, inMs } = step
      const { name, ...given } = withParents(step.given, parts)
      return {
        inModel: () => [schedule(model, name, key, inMs, given)],
        inMill: (tx) =>
          one(mill.schedule(name, inputOf(given), inMs, { ...millOptions(given, parts), key, tx } as object)),
      }
    }
    case 'many':
      return manyOf(step, parts)
    case 'flow':
      return flowOf(step, parts)
    case 'seal':
      return sealOf(step, parts)
    case 'sequence': {
      const { total, start } = step
      const { name, ...given } = step.given
      const items = Array.from({ length: total }, () => ({}))
      return {
        inModel: () => [makeSequence(model, name, total, start, given)],
        inMill: (tx) => one(mill.sequence(name, items, { ...millOptions(given, parts), start, tx } as object)),
      }
    }
  }
}

function sealOf({ group, whenDone }: Extract<InsertStep, { step: 'seal' }>, parts: Parts): Insert {
  const { model, mill } = parts as Parts & { readonly mill: Mill }
  if (whenDone === null)
    return {
      inModel: () => seal(model, group, null),
      inMill: (tx) => mill.group(group).seal(tx === undefined ? {} : { tx }),
    }
  const { name, ...given } = withParents(whenDone, parts)
  const follower = [name, inputOf(given), millOptions(given, parts)] as const
  return {
    inModel: () => seal(model, group, { name, given }),
    inMill: (tx) => mill.group(group, { whenDone: follower }).seal(tx === undefined ? {} : { tx }),
  }
}

function manyOf(step: Extract<InsertStep, { step: 'many' }>, parts: Parts): Insert {
  const { model, mill } = parts as Parts & { readonly mill: Mill }
  const { name, onDuplicate } = step
  const items = step.items.map((given) => {
    const { name: _, ...rest } = withParents({ ...given, name }, parts)
    return rest
  })
  return {
    inModel: () =>
      enqueueMany(
        model,
        items.map((given) => ({ name, given })),
        items.some(({ key }) => key !== undefined) ? onDuplicate : 'return',
      ),
    inMill: (tx) =>
      mill.enqueueMany(
        name,
        items.map(inputOf),
        (_: unknown, index: number) => ({ ...keyed(items[index] as Enqueue, onDuplicate, parts), tx }) as object,
      ),
  }
}

function flowOf(step: Extract<InsertStep, { step: 'flow' }>, parts: Parts): Insert {
  const { model, mill } = parts as Parts & { readonly mill: Mill }
  const { nodes, onDuplicate } = step
  const items = nodes.map((node) => {
    const { name, ...given } = withParents(node.given, parts)
    return { name, given, afterItems: parentsIn(nodes, node) }
  })
  return {
    inModel: () => flow(model, items, items.some(({ given }) => given.key !== undefined) ? onDuplicate : 'return'),
    inMill: (tx) =>
      mill.flow(
        (f) => {
          const made = items.map(({ name, given }) => f.add(name, inputOf(given), keyed(given, onDuplicate, parts)))
          for (const [index, { afterItems }] of items.entries())
            made[index]?.after(...afterItems.map((parent) => made[parent] as never))
        },
        tx === undefined ? undefined : { tx },
      ),
  }
}

/** Each once: which nodes it comes after. */
function parentsIn(nodes: readonly Node[], { afterNodes }: Node): number[] {
  return [...new Set(afterNodes.map((index) => index % nodes.length))]
}

function keyed(given: Enqueue, onDuplicate: string, parts: Parts): object {
  return { ...millOptions(given, parts), ...(given.key === undefined ? {} : { onDuplicate }) }
}

/** On SQLite a call in a transaction throws at once, so the list is made of the promise that it returned. */
function one(handle: Promise<unknown>): Promise<unknown[]> {
  return handle.then((value) => [value])
}

/** Existing jobs by their numbers, each once, whose ids are known. */
export function knownJobs(given: readonly number[], { model, ids }: Parts): number[] {
  if (model.jobs.length === 0) return []
  return [...new Set(given.map((number) => number % model.jobs.length))].filter(
    (number) => ids.id(number) !== undefined,
  )
}

/** Parents as numbers of jobs that exist. */
export function withParents(given: Given, parts: Parts): Given {
  const { after, onParentFailure, ...rest } = given
  const numbers = knownJobs(after ?? [], parts)
  const policy = onParentFailure === undefined ? {} : { onParentFailure }
  return numbers.length === 0 ? { ...rest, ...policy } : { ...rest, ...policy, after: numbers }
}

/** The code of a workflow is its input. */
export function inputOf({ body }: Enqueue): object {
  return body ?? {}
}

export function millOptions({ inMs, expiresMs, unique, after, ...given }: Enqueue, { ids }: Parts): object {
  const { body: _, ...rest } = given
  return {
    ...rest,
    ...(inMs === undefined ? {} : { in: inMs }),
    ...(expiresMs === undefined ? {} : { expires: expiresMs }),
    ...(after === undefined ? {} : { after: after.map((number) => ids.id(number)) }),
    ...(unique === undefined ? {} : { unique: uniqueOf(unique) }),
  }
}

function uniqueOf({ value, forMs, ...rest }: NonNullable<Enqueue['unique']>): object {
  return { by: () => value, ...(forMs === undefined ? {} : { for: forMs }), ...rest }
}

import { show } from '../../codec/show.js'
import { CycleError } from '../../errors.js'
import { findCycle } from '../../job/rules/links.js'
import type { OnDuplicate } from '../../job/rules/unique.js'
import type { InsertOptions, NewJob } from '../../store/store.js'
import { refuseTooManyLinks } from '../enqueue/parent-links.js'
import { wrongFlow } from './flow.js'
import type { FlowGraph } from './flow.js'
import { refuseAs } from '../enqueue/refuse.js'
import type { Prepared, ItemProblems } from '../enqueue/prepare.js'

/** The most bad nodes of a flow that one error lists. */
const WRONG_MAX = 20

/** The rows of a flow. Throws one error that lists every problem. */
export function flowRows(graph: FlowGraph, prepared: readonly Prepared[]): NewJob[] {
  const wrongs = prepared.flatMap((one) => ('wrong' in one ? [one.wrong] : []))
  if (wrongs.length > 0) refuseAs('flow()', wrongs.slice(0, WRONG_MAX).map(ofNode))
  const rows = prepared.map((one, index) => ({
    ...(one as { readonly row: NewJob }).row,
    keepCancelledMs: graph.nodes[index]?.registered.keepMs.cancelled,
  }))
  refuseTooManyLinks(rows, 'flow()')
  refuseCycle(rows)
  return rows
}

/** Error paths of a bulk are payloads[3] and options[3]; those of a flow are nodes[3].payload and nodes[3].options. */
function ofNode(wrong: ItemProblems): ItemProblems {
  const named = (path: string): string =>
    path.replace(/^(payload|option)s(\[\d+\])/, (_, what, at) => `nodes${at}.${what === 'option' ? 'options' : what}`)
  const rename = <P extends { readonly path: string }>(p: P): P => ({ ...p, path: named(p.path) })
  return { ...wrong, options: wrong.options.map(rename), payload: wrong.payload.map(rename) }
}

/** One insert has one `onDuplicate` policy, so all nodes with a key must have the same. */
export function flowOptions({ nodes }: FlowGraph): InsertOptions {
  let policy: OnDuplicate | undefined
  for (const [index, { options }] of nodes.entries()) {
    if (options?.key === undefined) continue
    const own = options.onDuplicate ?? 'return'
    if (policy !== undefined && own !== policy) {
      const message = `must be the same for all nodes with a key, got ${show(own)} after ${show(policy)}; use one, or two flows`
      throw wrongFlow([{ path: `nodes[${index}].options.onDuplicate`, message }])
    }
    policy = own
  }
  return { onDuplicate: policy ?? 'return', keepCancelledMs: Infinity }
}

/** Refuses a cycle. The error shows each node as its job's name and its index in the flow. */
function refuseCycle(rows: readonly NewJob[]): void {
  const indexes = new Map(rows.map((row, index) => [row.id, index]))
  const parentsOf = (id: string): string[] =>
    (rows[indexes.get(id) as number]?.after ?? []).flatMap((one) =>
      'id' in one && indexes.has(one.id) ? [one.id] : [],
    )
  const path = findCycle(
    rows.map((row) => row.id),
    parentsOf,
  )
  if (path === undefined) return
  throw new CycleError(path.map((id) => `${rows[indexes.get(id) as number]?.name}[${indexes.get(id)}]`))
}

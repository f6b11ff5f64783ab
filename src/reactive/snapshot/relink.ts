import { canonicalText, defaultCodec } from '../../codec/codec.js'
import { ComputedNode } from '../graph/computed.js'
import type { GraphNode } from '../graph/graph.js'
import { recordRead, refresh } from '../graph/graph.js'
import type { UnboundEntry } from '../replay/log.js'
import type { Run } from '../spins/run.js'

/** A restored entry was replayed: makes the link again, with the stamp of then, and notes whether the value has changed. */
export function relink(run: Run, entry: UnboundEntry, node: GraphNode): void {
  if (entry.link !== undefined) return
  if (node instanceof ComputedNode) refresh(node)
  const link = recordRead(run.node, node)
  link.stamp = node instanceof ComputedNode ? stampOf(entry, node) : (entry.stamp ?? 0)
  run.log.relink(entry, link)
  if (link.stamp !== node.stamp) run.context.restored?.noteOutdated(run.node)
}

/** A computed is not stored but computed again; its stamp is another one, so its value decides. */
function stampOf(entry: UnboundEntry, node: ComputedNode): number {
  const { result } = node
  if (result.ok === entry.isError) return NEVER
  const before = entry.isError ? entry.value : (entry.value as { readonly new: unknown }).new
  return isSameData(before, result.ok ? result.value : result.error) ? node.stamp : NEVER
}

function isSameData(a: unknown, b: unknown): boolean {
  if (Object.is(a, b)) return true
  try {
    return canonicalText(defaultCodec, a) === canonicalText(defaultCodec, b)
  } catch {
    return false // A value that cannot be written cannot be compared: the body runs again.
  }
}

/** No value has this stamp. */
const NEVER = -1

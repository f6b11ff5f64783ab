import type { ReactiveContext } from '../context/context.js'
import type { GraphNode } from '../graph/graph.js'
import type { DeferredNode } from '../mailboxes/deferred.js'
import type { MailboxNode } from '../mailboxes/mailbox.js'

/** What a fork can have its own state of: every node except effects. */
export type Place = GraphNode | DeferredNode | MailboxNode

/** Whether a node belongs to a context itself, and not to one that it was forked from. */
export function isOf(node: Place, context: ReactiveContext): boolean {
  return 'graph' in node ? node.graph === context.graph : node.context === context
}

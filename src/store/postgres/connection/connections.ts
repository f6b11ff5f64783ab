import type { World } from '../../../world/world.js'
import { Connection } from './connection.js'
import type { Queries } from '../queries/queries.js'
import type { Shortage } from './shortage.js'
import type { Target } from './target.js'

/** The two connections that all verbs share. */
export interface Connections {
  readonly writes: Connection
  readonly work: Connection
  onReconnect(callback: () => void): void
  close(): Promise<unknown>
}

/** `keepsSession`: a connection keeps its session, so session settings stay in effect. */
export function makeConnections(parts: {
  readonly target: Target
  readonly queries: Queries
  readonly world: World
  readonly keepsSession: boolean
  readonly shortage: Shortage
}): Connections {
  const { target, queries, world, keepsSession, shortage } = parts
  let reconnected: (() => void) | undefined
  const connect = (setUp: string): Connection =>
    new Connection({
      world,
      name: target.name,
      makeClient: target.makeClient,
      keepsSession: () => keepsSession,
      shortage,
      onReconnect: () => reconnected?.(),
      ...(keepsSession ? { onConnect: (client) => client.query({ text: setUp, values: [] }) } : {}),
    })
  const [writes, work] = [connect(queries.setUpWrites), connect(queries.setUpWork)]
  return {
    writes,
    work,
    onReconnect: (callback) => void (reconnected = callback),
    close: () => Promise.all([writes.close(), work.close()]),
  }
}

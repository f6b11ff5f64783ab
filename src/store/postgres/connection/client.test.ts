import { once } from 'node:events'
import { createServer } from 'node:net'
import type { AddressInfo, Socket } from 'node:net'
import { Client } from 'pg'
import { expect, test } from 'vitest'
import { systemTimers } from '../../../world/timers.js'
import type { Timers } from '../../../world/timers.js'
import { connectWithin, endClient } from './client.js'
import type { PgClient } from './client.js'

/** Timers never fire: a rejection has another cause than the time limit. */
const timeless: Timers = { after: () => () => undefined, soon: (callback) => void setImmediate(callback) }

test('a client that is ended while it connects rejects at once, without waiting for the time limit', async () => {
  // A server that accepts the connection and sends nothing.
  const sockets: Socket[] = []
  const server = createServer((socket) => void sockets.push(socket))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const client = new Client(`postgres://ada@127.0.0.1:${port}/app`) as unknown as PgClient
  client.on('error', () => undefined)
  const connecting = connectWithin(client, timeless, 1)
  const refused = expect(connecting).rejects.toThrow('Connection terminated')
  if (sockets.length === 0) await once(server, 'connection')
  await endClient(client, systemTimers)
  await refused
  for (const socket of sockets) socket.destroy()
  server.close()
})

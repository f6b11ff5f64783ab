import { createConnection, createServer } from 'node:net'
import type { AddressInfo, Socket } from 'node:net'

/** A proxy to a server that can disturb connections. */
export interface Proxy {
  /** The server's address through this proxy. */
  readonly url: string
  /** Nothing passes in either direction, without an error, until `heal`. */
  blackHole(): void
  heal(): void
  /** New connections are made to this server from now on; open ones stay as they are. */
  lead(url: string): void
  /** Every connection is reset. */
  reset(): void
  /** The next message to the server that contains this text passes; its reply does not, and then the connection is cut. */
  loseAnswerTo(text: string): void
  /** The next message to the server that contains this text does not reach it, and the connection is cut. */
  swallow(text: string): void
  readonly lost: number
  close(): Promise<void>
}

interface Line {
  readonly client: Socket
  readonly server: Socket
  isDeaf: boolean
}

/** Each message of the server is passed through `pass`; undefined drops it. */
export async function startProxy(
  url: string,
  pass: (message: Buffer) => Buffer | undefined = (m) => m,
): Promise<Proxy> {
  let target = new URL(url)
  const lines = new Set<Line>()
  let [isHole, secret, lost] = [false, undefined as string | undefined, 0]
  let swallowed: string | undefined
  const cut = (line: Line): void => {
    lines.delete(line)
    line.client.resetAndDestroy()
    line.server.destroy()
  }
  const door = createServer((client) => {
    const server = createConnection(Number(target.port), target.hostname)
    const line: Line = { client, server, isDeaf: false }
    lines.add(line)
    for (const socket of [client, server])
      socket
        .setNoDelay()
        .on('error', () => cut(line))
        .on('close', () => isHole || cut(line))
    client.on('data', (data) => {
      if (isHole) return
      if (swallowed !== undefined && data.includes(swallowed)) {
        swallowed = undefined
        lost += 1
        return cut(line)
      }
      server.write(data)
      if (secret === undefined || !data.includes(secret)) return
      line.isDeaf = true
      secret = undefined
      lost += 1
      setTimeout(() => cut(line), 200)
    })
    server.on(
      'data',
      messages((message) => {
        // The server is ready for more: it has executed the statement.
        if (line.isDeaf && message[0] === READY) return cut(line)
        const passed = isHole || line.isDeaf ? undefined : pass(message)
        if (passed !== undefined) client.write(passed)
      }),
    )
  })
  await new Promise<void>((ready) => door.listen(0, '127.0.0.1', ready))
  const near = new URL(url)
  near.port = String((door.address() as AddressInfo).port)
  const cutAll = (): void => [...lines].forEach(cut)
  return {
    url: near.href,
    blackHole: () => void (isHole = true),
    heal: () => {
      isHole = false
      // The swallowed data is missing: these connections cannot be used any more.
      cutAll()
    },
    lead: (other) => void (target = new URL(other)),
    reset: cutAll,
    loseAnswerTo: (text) => void (secret = text),
    swallow: (text) => void (swallowed = text),
    get lost() {
      return lost
    },
    close: () => {
      isHole = false
      cutAll()
      return new Promise((closed) => door.close(() => closed()))
    },
  }
}

const READY = 'Z'.charCodeAt(0)

/** Splits the data of a server into its messages: a letter, a length, a body. */
function messages(take: (message: Buffer) => void): (data: Buffer) => void {
  let rest: Buffer = Buffer.alloc(0)
  return (data) => {
    rest = rest.length === 0 ? data : Buffer.concat([rest, data])
    while (rest.length >= 5) {
      const end = 1 + rest.readUInt32BE(1)
      if (rest.length < end) return
      take(rest.subarray(0, end))
      rest = rest.subarray(end)
    }
  }
}

/**
 * Behaves like a pooler that assigns sessions per transaction: notifications do not arrive, and the server process at
 * login is not the one that will run the statements.
 */
export function asPooler(message: Buffer): Buffer | undefined {
  const kind = String.fromCharCode(message[0] as number)
  if (kind === 'A') return undefined
  if (kind !== 'K') return message
  const other = Buffer.from(message)
  other.writeUInt32BE(other.readUInt32BE(5) + 100_000, 5)
  return other
}

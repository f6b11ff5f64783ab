import type { World } from '../../../world/world.js'
import type { Role } from '../../protocol/verbs.js'
import { EventStream } from './stream.js'

/** Streams at once: of one session, of one address, of all. */
const SESSION_MAX = 8
const ADDRESS_MAX = 32
const STREAMS_MAX = 200

export interface StreamOf {
  readonly role: Role
  /** The session, or the actor where the app signs users in. */
  readonly session: string
  readonly address: string | undefined
  readonly isAllowed: () => Promise<boolean>
}

/** All open streams. */
export class Streams {
  readonly #world: World
  readonly #open = new Map<EventStream, StreamOf>()

  constructor(world: World) {
    this.#world = world
  }

  /** Undefined: there are too many. */
  open(of: StreamOf): EventStream | undefined {
    const others = [...this.#open.values()]
    const ofSession = others.filter(({ session }) => session === of.session).length
    // Where the address is not known, all requests would be of the same one.
    const ofAddress = of.address === undefined ? 0 : others.filter(({ address }) => address === of.address).length
    if (ofSession >= SESSION_MAX || ofAddress >= ADDRESS_MAX || others.length >= STREAMS_MAX) return undefined
    const stream: EventStream = new EventStream(this.#world, of.role, {
      closed: () => this.#open.delete(stream),
      isAllowed: of.isAllowed,
    })
    this.#open.set(stream, of)
    return stream
  }

  end(): void {
    for (const stream of this.#open.keys()) stream.bye('stopping')
  }
}

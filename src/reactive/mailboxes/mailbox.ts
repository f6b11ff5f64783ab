import { requireContext } from '../context/ambient.js'
import { Cell } from '../graph/cell.js'
import type { ReactiveContext } from '../context/context.js'
import type { CellOptions } from './deferred.js'
import { Fifo } from '../drain/fifo.js'
import type { Entry } from '../replay/log.js'
import type { Request } from '../spins/request.js'
import { success } from '../result.js'
import { checkCellOptions, refuseInComputed } from '../graph/signal.js'

/** A queue of messages, in order; each message is received by exactly one taker. */
export interface Mailbox<T> {
  readonly addr: string
  /** Messages that wait for a taker. */
  readonly size: number
  /** Takers that wait for a message. */
  readonly waiters: number
  /** Adds a message. */
  post(message: T): void
}

/**
 * Creates a mailbox in the current context. Take from it with `yield* waitFor(mailbox)`.
 *
 * ```ts
 * import { createSimulation, mailbox, waitFor } from 'millrace/reactive'
 *
 * const ctx = createSimulation()
 * const inbox = ctx.enter(() => mailbox<string>())
 * ctx.spawn(function* () {
 *   console.log(yield* waitFor(inbox))
 * })
 * ctx.enter(() => inbox.post('hello'))
 * ```
 */
export function mailbox<T>(options: CellOptions = {}): Mailbox<T> {
  const context = requireContext('mailbox')
  refuseInComputed(context, 'mailbox')
  checkCellOptions('mailbox', options)
  return context.openCell('mailbox', options.key, (addr) => {
    return new MailboxCell(context, new MailboxNode(context, addr))
  }) as unknown as Mailbox<T>
}

/** A message keeps its order of arrival, so that returned messages keep their order. */
export interface Message {
  readonly order: number
  readonly body: unknown
}

export class MailboxNode {
  readonly context: ReactiveContext
  readonly addr: string
  readonly #messages = new Fifo<Message>()
  readonly waiters = new Set<Request<unknown>>()
  /** In a fork that has not posted: no run of the parent has been resumed here by a post. */
  isFollowing = false
  #lastOrder = 0

  constructor(context: ReactiveContext, addr: string) {
    this.context = context
    this.addr = addr
  }

  get size(): number {
    return this.#messages.length
  }

  get hasMessage(): boolean {
    return this.#messages.length > 0
  }

  /** Takes over the messages of another mailbox, which keeps them. */
  copyFrom(other: MailboxNode): void {
    for (const message of other.#messages.toArray()) this.#messages.push(message)
    this.#lastOrder = other.#lastOrder
  }

  messages(): Message[] {
    return this.#messages.toArray()
  }

  get lastOrder(): number {
    return this.#lastOrder
  }

  restore(messages: readonly Message[], lastOrder: number): void {
    while (this.#messages.shift() !== undefined);
    for (const message of messages) this.#messages.push(message)
    this.#lastOrder = lastOrder
  }

  /** Sets the waiting order; spins that are not named come last. */
  reorderTakers(addrs: readonly string[]): void {
    const rank = (request: Request<unknown>): number => {
      const index = addrs.indexOf(request.run?.node.addr ?? '')
      return index < 0 ? addrs.length : index
    }
    const requests = [...this.waiters].sort((a, b) => rank(a) - rank(b))
    this.waiters.clear()
    for (const request of requests) this.waiters.add(request)
  }

  receive(body: unknown): void {
    this.#messages.push({ order: ++this.#lastOrder, body })
    this.serve()
  }

  /** Takes the first message; call it only while `hasMessage`. `entry` records the order, in case the message is returned. */
  take(entry: Entry): unknown {
    const message = this.#messages.shift() as Message
    entry.order = message.order
    return message.body
  }

  /** Hands messages to waiting takers, in waiting order. */
  serve(): void {
    for (const request of this.waiters) {
      if (!this.hasMessage) return
      this.waiters.delete(request)
      this.context.waiterCount--
      this.context.enqueue({ type: 'resume', request, result: success(this.take(request.entry as Entry)) })
    }
  }

  /** Returns a message whose taker has died: to the front, ordered among other returned messages by arrival. */
  putBack({ order }: Entry, body: unknown): void {
    const earlier: Message[] = []
    for (let first = this.#messages.peek(); first !== undefined && first.order < order; first = this.#messages.peek()) {
      earlier.push(first)
      this.#messages.shift()
    }
    this.#messages.unshift({ order, body })
    for (let message = earlier.pop(); message !== undefined; message = earlier.pop()) this.#messages.unshift(message)
  }
}

export class MailboxCell extends Cell implements Mailbox<unknown> {
  readonly node: MailboxNode

  constructor(home: ReactiveContext, node: MailboxNode) {
    super(home, node.addr)
    this.node = node
  }

  get size(): number {
    return this.readable('mailbox.size').existing(this.node).size
  }

  get waiters(): number {
    return this.readable('mailbox.waiters').existing(this.node).waiters.size
  }

  post(message: unknown): void {
    this.postIn(this.writable('mailbox.post'), message)
  }

  postIn(context: ReactiveContext, message: unknown): void {
    const { overlay } = context
    if (overlay === undefined) context.enqueue({ type: 'mailbox-post', node: this.node, message })
    else overlay.change(this.node, (node) => context.enqueue({ type: 'mailbox-post', node, message }))
  }
}

import { signal } from '@preact/signals'
import type { ReadonlySignal, Signal } from '@preact/signals'
import { canDo, refusalText } from '../protocol.js'
import type { ActAnswer, ActArguments, Role, Verb } from '../protocol.js'
import { ApiError } from './connection/api.js'
import type { Api } from './connection/api.js'
import type { Status } from './connection/connection.js'

export interface Toast {
  readonly id: number
  readonly kind: 'good' | 'bad'
  readonly text: string
  readonly link: string | null
  readonly undo: (() => void) | undefined
}

/** What a button asks for. `expect` is the state for which it was drawn. */
export interface Wish {
  readonly verb: Verb
  readonly target: string
  readonly expect?: string | undefined
  readonly args?: ActArguments | undefined
  readonly reason?: string | undefined
}

/** How long the result of an action is shown, and can be taken back. */
const TOAST_MS = 10_000
const TOASTS_MAX = 4

/** Sends what a user asks for, one request for each click, and shows the result. Nothing is changed on the page before the server says so. */
export class Actions {
  readonly toasts = signal<readonly Toast[]>([])
  /** `verb target` of requests that are under way: their buttons say so. */
  readonly pending: Signal<ReadonlySet<string>> = signal(new Set<string>())
  readonly #api: Api
  readonly #role: () => Role
  readonly #status: ReadonlySignal<Status>
  #count = 0

  constructor(api: Api, role: () => Role, status: ReadonlySignal<Status>) {
    this.#api = api
    this.#role = role
    this.#status = status
  }

  /** Why a verb cannot be used by this user; undefined when it can. */
  refusal(verb: Verb): string | undefined {
    if (this.#status.value.kind === 'signed-out') return 'You are signed out.'
    if (this.#status.value.kind === 'lost') return 'There is no connection to the server.'
    if (canDo(this.#role(), verb)) return undefined
    return refusalText(this.#role(), verb)
  }

  isPending({ verb, target }: Wish): boolean {
    return this.pending.value.has(`${verb} ${target}`)
  }

  async act(wish: Wish): Promise<ActAnswer | undefined> {
    const name = `${wish.verb} ${wish.target}`
    if (this.pending.peek().has(name)) return undefined
    this.pending.value = new Set([...this.pending.peek(), name])
    try {
      const answer = await this.#api.post<ActAnswer>('act', { ...wish, nonce: nonce() })
      this.#show(answer.changed ? 'good' : 'bad', answer.text, answer.link, this.#undoOf(wish, answer))
      return answer
    } catch (error) {
      const { body } = error instanceof ApiError ? error : { body: undefined }
      this.#show('bad', [(error as Error).message, body?.hint ?? ''].join(' ').trim(), null, undefined)
      return undefined
    } finally {
      this.pending.value = new Set([...this.pending.peek()].filter((each) => each !== name))
    }
  }

  say(kind: Toast['kind'], text: string): void {
    this.#show(kind, text, null, undefined)
  }

  close(id: number): void {
    this.toasts.value = this.toasts.peek().filter((toast) => toast.id !== id)
  }

  #undoOf({ target }: Wish, { undo }: ActAnswer): (() => void) | undefined {
    return undo === null ? undefined : () => void this.act({ verb: undo, target })
  }

  #show(kind: Toast['kind'], text: string, link: string | null, undo: (() => void) | undefined): void {
    const id = ++this.#count
    this.toasts.value = [...this.toasts.peek(), { id, kind, text, link, undo }].slice(-TOASTS_MAX)
    setTimeout(() => this.close(id), TOAST_MS)
  }
}

/** `crypto.randomUUID` is missing on plain HTTP; random bytes are not. */
function nonce(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16))
  return [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('')
}

import { batch, computed, signal } from '@preact/signals'
import type { ReadonlySignal, Signal } from '@preact/signals'
import type { Frame, Snapshot } from '../../protocol.js'
import { ApiError } from './api.js'
import type { Api } from './api.js'
import { waitBefore } from './backoff.js'
import { eventReader, readText } from './events.js'
import { NOTHING_HELD, afterFrame } from './held.js'
import type { Held } from './held.js'
import type { TabMessage, Tabs } from './leader.js'

/** Without a beat for so long the stream is dead. */
const SILENCE_MS = 25_000
/** How often a tab asks for its topics when the server has no stream left. */
const POLL_MS = 5_000
/** A hidden tab gives its topics back after this time. */
const HIDDEN_MS = 10_000
/** How often the health is read while no tab is visible: for the favicon and the title. */
const HIDDEN_POLL_MS = 30_000

export type Status =
  | { readonly kind: 'connecting' | 'live' | 'polling' | 'signed-out' }
  /** No stream since then, by the tab's clock. */
  | { readonly kind: 'lost'; readonly since: number }

/** What the views read: the newest state of each topic, and how true it is. */
export interface Live {
  readonly status: ReadonlySignal<Status>
  readonly frozen: Signal<boolean>
  /** The newest state of a topic; it stands still while the page is frozen. */
  held(topic: string): ReadonlySignal<Held>
  /** The topics that this tab shows. */
  want(topics: readonly string[]): void
  /** One topic more, until the returned function is called: of a part that opens and closes. */
  also(topic: string): () => void
}

export interface LiveParts {
  readonly api: Api
  readonly tabs: Tabs
  /** Takes over the server's time of each frame. */
  readonly follow: (serverNow: number) => void
  readonly document: Document
  readonly chance: () => number
}

/** The one reader of the stream, or the listener of the tab that reads it. */
export class Connection implements Live {
  readonly status = signal<Status>({ kind: 'connecting' })
  readonly frozen = signal(false)
  readonly #parts: LiveParts
  readonly #tab = String(Math.random()).slice(2)
  readonly #held = new Map<string, Signal<Held>>()
  readonly #shown = new Map<string, ReadonlySignal<Held>>()
  readonly #wanted = new Map<string, readonly string[]>()
  #page: readonly string[] = []
  readonly #more = new Set<string>()
  #mine: readonly string[] = []
  #isLeader = false
  #tries = 0
  #stream: AbortController | undefined
  #timer: ReturnType<typeof setTimeout> | undefined
  #silence: ReturnType<typeof setTimeout> | undefined

  constructor(parts: LiveParts) {
    this.#parts = parts
    parts.tabs.onMessage((message) => this.#receive(message))
    parts.tabs.elect(() => this.#lead())
    this.#watchVisibility()
  }

  held(topic: string): ReadonlySignal<Held> {
    const known = this.#shown.get(topic)
    if (known !== undefined) return known
    const held = this.#heldOf(topic)
    let still = held.peek()
    const shown = computed(() => {
      const newest = held.value
      // A page without any state is not frozen: it waits for its first one.
      if (!this.frozen.value || still.snapshot === undefined) still = newest
      return still
    })
    this.#shown.set(topic, shown)
    return shown
  }

  want(topics: readonly string[]): void {
    this.#page = topics
    this.#announceMine()
  }

  also(topic: string): () => void {
    this.#more.add(topic)
    this.#announceMine()
    return () => {
      this.#more.delete(topic)
      this.#announceMine()
    }
  }

  #announceMine(): void {
    this.#mine = [...new Set([...this.#page, ...this.#more])]
    this.#announce(this.#mine)
  }

  #announce(topics: readonly string[]): void {
    this.#wanted.set(this.#tab, topics)
    this.#parts.tabs.send({ kind: 'want', tab: this.#tab, topics })
    if (this.#isLeader) this.#reopen()
  }

  #lead(): void {
    this.#isLeader = true
    this.#parts.tabs.send({ kind: 'who' })
    this.#reopen()
  }

  #receive(message: TabMessage): void {
    if (message.kind === 'who') this.#parts.tabs.send({ kind: 'want', tab: this.#tab, topics: this.#mine })
    else if (message.kind === 'want') this.#noteWant(message.tab, message.topics)
    else if (message.kind === 'frame' && !this.#isLeader) this.#take(message.frame as Frame)
    else if (message.kind === 'status' && !this.#isLeader) this.status.value = message.status as Status
  }

  #noteWant(tab: string, topics: readonly string[]): void {
    if (!this.#isLeader) return
    const before = this.#topics()
    this.#wanted.set(tab, topics)
    this.#parts.tabs.send({ kind: 'status', status: this.status.peek() })
    for (const topic of topics) this.#passOn(topic)
    if (this.#topics().some((topic) => !before.includes(topic))) this.#reopen()
  }

  /** A tab that has just opened gets the state that the leader has. */
  #passOn(topic: string): void {
    const { snapshot } = this.#heldOf(topic).peek()
    if (snapshot === undefined) return
    this.#parts.tabs.send({ kind: 'frame', frame: { event: 'snapshot', id: snapshot.id ?? '', data: snapshot } })
  }

  #topics(): string[] {
    return [...new Set([...this.#wanted.values()].flat())].sort()
  }

  #reopen(): void {
    clearTimeout(this.#timer)
    this.#stream?.abort()
    const topics = this.#topics()
    if (topics.length === 0) return this.#pollHidden()
    const stream = new AbortController()
    this.#stream = stream
    void this.#read(topics, stream)
  }

  async #read(topics: readonly string[], stream: AbortController): Promise<void> {
    const take = eventReader()
    try {
      const body = await this.#parts.api.stream({ topics, have: this.#have(topics) }, stream.signal)
      this.#setStatus({ kind: 'live' })
      this.#tries = 0
      this.#expectBeat(stream)
      await readText(body, (text) => {
        this.#expectBeat(stream)
        batch(() => take(text).forEach((frame) => this.#accept(frame)))
      })
      if (this.#stream === stream) this.#retry(undefined)
    } catch (error) {
      if (this.#stream === stream) this.#retry(error)
    } finally {
      clearTimeout(this.#silence)
    }
  }

  #accept(frame: Frame): void {
    this.#parts.tabs.send({ kind: 'frame', frame })
    this.#take(frame)
  }

  #take(frame: Frame): void {
    if (frame.event === 'bye') {
      if (frame.data.reason === 'signed-out') this.#setStatus({ kind: 'signed-out' })
      return
    }
    if ('now' in frame.data) this.#parts.follow(frame.data.now)
    const held = this.#heldOf(frame.data.topic)
    held.value = afterFrame(held.peek(), frame)
  }

  #retry(error: unknown): void {
    if (error instanceof ApiError && error.status === 401) return this.#setStatus({ kind: 'signed-out' })
    if (error instanceof ApiError && (error.status === 503 || error.status === 429)) {
      this.#setStatus({ kind: 'polling' })
      return void this.#poll(this.#topics(), error.retryMs ?? POLL_MS)
    }
    if (this.status.peek().kind !== 'lost') this.#setStatus({ kind: 'lost', since: Date.now() })
    this.#timer = setTimeout(() => this.#reopen(), waitBefore(this.#tries++, this.#parts.chance()))
  }

  /** The server has no stream left: the topics are read one by one, and the stream is tried again each minute. */
  async #poll(topics: readonly string[], everyMs: number): Promise<void> {
    for (const topic of topics) await this.#view(topic)
    const isTimeForStream = this.#tries++ % 12 === 11
    this.#timer = setTimeout(() => {
      if (isTimeForStream) this.#reopen()
      else void this.#poll(this.#topics(), POLL_MS)
    }, everyMs)
  }

  #pollHidden(): void {
    this.#timer = setTimeout(() => {
      void this.#view('health').then(() => this.#pollHidden())
    }, HIDDEN_POLL_MS)
  }

  async #view(topic: string): Promise<void> {
    const have = this.#heldOf(topic).peek().snapshot?.id
    try {
      const snapshot = await this.#parts.api.post<Snapshot | undefined>('view', { topic, have })
      if (snapshot !== undefined) this.#accept({ event: 'snapshot', id: snapshot.id ?? '', data: snapshot })
    } catch (error) {
      if (error instanceof ApiError && error.status === 401) this.#setStatus({ kind: 'signed-out' })
    }
  }

  #have(topics: readonly string[]): Record<string, string> {
    const known = topics.map((topic) => [topic, this.#heldOf(topic).peek().snapshot?.id] as const)
    return Object.fromEntries(known.filter((each): each is [string, string] => each[1] !== undefined && each[1] !== ''))
  }

  #expectBeat(stream: AbortController): void {
    clearTimeout(this.#silence)
    this.#silence = setTimeout(() => {
      stream.abort()
      if (this.#stream === stream) this.#retry(undefined)
      this.#stream = undefined
    }, SILENCE_MS)
  }

  #setStatus(status: Status): void {
    this.status.value = status
    if (this.#isLeader) this.#parts.tabs.send({ kind: 'status', status })
  }

  #heldOf(topic: string): Signal<Held> {
    const known = this.#held.get(topic)
    if (known !== undefined) return known
    const made = signal<Held>(NOTHING_HELD)
    this.#held.set(topic, made)
    return made
  }

  #watchVisibility(): void {
    const { document } = this.#parts
    let hiding: ReturnType<typeof setTimeout> | undefined
    document.addEventListener('visibilitychange', () => {
      clearTimeout(hiding)
      if (document.visibilityState === 'visible') this.#announce(this.#mine)
      else hiding = setTimeout(() => this.#announce([]), HIDDEN_MS)
    })
    document.defaultView?.addEventListener('online', () => this.#comeBack())
    document.defaultView?.addEventListener('focus', () => this.#comeBack())
    document.defaultView?.addEventListener('pagehide', () =>
      this.#parts.tabs.send({ kind: 'want', tab: this.#tab, topics: [] }),
    )
  }

  #comeBack(): void {
    if (this.#isLeader && this.status.peek().kind === 'lost') this.#reopen()
  }
}

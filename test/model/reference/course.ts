/**
 * The code of a workflow, as data, and the course that it takes: a function of its answers alone. Answers are given one by one, in
 * the order of their numbers; what the code calls, what is rejected and how it ends follows from them.
 */

/** How one act of a step ends. */
export type ActEnd = 'return' | 'throw' | 'abort'

/** A call of a verb that is recorded. */
export type Deed =
  /** Each act ends at once, the last of `ends` as often as it is needed; 'held': when a command ends it. */
  | { readonly verb: 'step'; readonly ends: readonly ActEnd[] | 'held' }
  | { readonly verb: 'sleep'; readonly ms: number }
  | { readonly verb: 'wait'; readonly event: string; readonly ms: number | null }
  | {
      readonly verb: 'call' | 'enqueue'
      readonly name: string
      readonly key: string | null
      readonly inMs: number
      readonly leaves: boolean
      /** The code of the called job, if that is a workflow. */
      readonly body: Body | null
    }

export type Statement =
  | Deed
  | { readonly verb: 'all' | 'each' | 'race'; readonly branches: readonly Body[] }
  /** An error of the first part is caught; or the second part cleans up, however the first ends. */
  | { readonly verb: 'try'; readonly body: Body }
  | { readonly verb: 'cleanup'; readonly body: Body; readonly undo: Body }
  /** The code never changes, so a version is always the latest. */
  | { readonly verb: 'version'; readonly body: Body }
  | { readonly verb: 'throw' }
  /** The first run ends by a restart with the same input. */
  | { readonly verb: 'restart' }

export type Body = readonly Statement[]

/** An answer as the code gets it. `unwound`: a step that threw because its branch had ended. */
export interface Answer {
  readonly no: number
  readonly address: string
  readonly isError: boolean
  readonly unwound: boolean
}

/** An operation that waits for its answer. */
export interface Operation {
  readonly address: string
  readonly deed: Deed
  /** One more than the number of the answer last given when it was called. */
  readonly since: number
  /** Its branch, or the workflow, is being ended: a step does not begin any more. */
  readonly isAborted: boolean
}

export interface Course {
  /** In the order of their calls. */
  readonly pending: readonly Operation[]
  /** Addresses that were rejected without an answer. */
  readonly rejected: ReadonlySet<string>
  readonly end: End | undefined
}

/** `no`: the answer whose error ended it; null: it was an error of its own. */
export type End = { readonly kind: 'returned' | 'restarted' } | { readonly kind: 'threw'; readonly no: number | null }

export const CANCEL = '!cancel'

/** The course of the code when these answers are given. Those whose operations are not called yet are given when they are. */
export function follow(body: Body, run: number, answers: readonly Answer[]): Course {
  const course = new Running(body, run)
  const left = [...answers]
  for (;;) {
    course.settle()
    const next = left.findIndex(({ address }, i) => (address === CANCEL ? i === 0 : course.isPending(address)))
    const [answer] = next === -1 ? [] : left.splice(next, 1)
    if (answer === undefined) return course.course()
    course.give(answer)
  }
}

/** What the code threw, and the answer that it comes from. */
class Thrown {
  readonly no: number | null
  constructor(no: number | null) {
    this.no = no
  }
}

/** The verbs of one scope share the reason for which they reject. */
class Scope {
  readonly path: string
  readonly isShield: boolean
  isEnded = false
  readonly #parent: Scope | undefined
  readonly #counts = new Map<string, number>()

  constructor(path: string, parent?: Scope, isShield = false) {
    this.path = path
    this.#parent = parent
    this.isShield = isShield
  }

  next(kind: string, name: string): string {
    const counted = `${kind}:${name}`
    const n = this.#counts.get(counted) ?? 0
    this.#counts.set(counted, n + 1)
    return `${this.path}/${counted}#${n}`
  }

  /** A cleanup works although the scopes around it are ended. */
  get isAborted(): boolean {
    return this.isEnded || (!this.isShield && this.#parent?.isAborted === true)
  }
}

interface Call {
  readonly scope: Scope
  readonly deed: Deed
}
interface Fork {
  readonly scope: Scope
  readonly kind: 'all' | 'each' | 'race'
  readonly branches: readonly Body[]
}
type Playing = Generator<Call | Fork, void, void>

function* play(body: Body, scope: Scope): Playing {
  for (const statement of body)
    switch (statement.verb) {
      case 'all':
      case 'each':
      case 'race':
        yield { scope, kind: statement.verb, branches: statement.branches }
        break
      case 'try':
        try {
          yield* play(statement.body, scope)
        } catch (error) {
          if (!(error instanceof Thrown)) throw error
        }
        break
      case 'cleanup':
        try {
          yield* play(statement.body, scope)
        } finally {
          yield* play(statement.undo, new Scope(scope.next('cleanup', ''), scope, true))
        }
        break
      case 'version':
        yield* play(statement.body, scope)
        break
      case 'throw':
        throw new Thrown(null)
      case 'restart':
        break
      case 'step':
      case 'sleep':
      case 'wait':
      case 'call':
      case 'enqueue':
        yield { scope, deed: statement }
    }
}

type Ended = { readonly error?: Thrown }

class Running {
  readonly #root = new Scope('')
  readonly #pending = new Map<string, { readonly call: Call; readonly since: number; readonly playing: Thread }>()
  readonly #rejected = new Set<string>()
  /** What follows in the same turn, in order. */
  readonly #queue: (() => void)[] = []
  readonly #restarts: boolean
  #lastNo = -1
  #isCancelled = false
  #end: End | undefined

  constructor(body: Body, run: number) {
    this.#restarts = run === 0 && body.at(-1)?.verb === 'restart'
    this.#begin(play(body, this.#root), (ended) => (this.#end = this.#endOf(ended)))
  }

  course(): Course {
    const pending = [...this.#pending].map(([address, { call, since }]) => ({
      address,
      deed: call.deed,
      since,
      isAborted: call.scope.isAborted,
    }))
    return { pending, rejected: this.#rejected, end: this.#end }
  }

  isPending(address: string): boolean {
    return this.#pending.has(address)
  }

  /** Everything that follows in this turn. */
  settle(): void {
    for (let next = this.#queue.shift(); next !== undefined; next = this.#queue.shift()) next()
  }

  give({ no, address, isError, unwound }: Answer): void {
    this.#lastNo = no
    if (address === CANCEL) {
      this.#isCancelled = true
      return this.#endScope(this.#root)
    }
    const { playing } = this.#take(address)
    playing(isError ? { error: new Thrown(unwound ? null : no) } : {})
  }

  #endOf({ error }: Ended): End {
    if (error !== undefined) return { kind: 'threw', no: error.no }
    return { kind: this.#restarts && !this.#isCancelled ? 'restarted' : 'returned' }
  }

  #take(address: string): { readonly call: Call; readonly playing: Thread } {
    const taken = this.#pending.get(address) as { readonly call: Call; readonly playing: Thread }
    this.#pending.delete(address)
    return taken
  }

  /** Runs code up to its next call, and again when that is answered; `over` is called in a later part of the turn. */
  #begin(code: Playing, over: (ended: Ended) => void): void {
    const goOn = ({ error }: Ended): void => {
      const ended = (how: Ended): void => void this.#queue.push(() => over(how))
      try {
        const { done, value } = error === undefined ? code.next() : code.throw(error)
        if (done === true) ended({})
        else this.#ask(value, goOn)
      } catch (thrown) {
        if (!(thrown instanceof Thrown)) throw thrown
        ended({ error: thrown })
      }
    }
    goOn({})
  }

  #ask(asked: Call | Fork, playing: Thread): void {
    const { scope } = asked
    if (scope.isAborted) return void this.#queue.push(() => playing({ error: new Thrown(null) }))
    if ('branches' in asked) return this.#fork(asked, playing)
    const { deed } = asked
    this.#pending.set(scope.next(deed.verb, nameOf(deed)), { call: asked, since: this.#lastNo + 1, playing })
  }

  /** All begin; the first to fail ends the others, and of a race the first to end. It is over when all are. */
  #fork({ scope, kind, branches }: Fork, playing: Thread): void {
    const path = scope.next(kind, kind === 'each' ? 'e' : '')
    const scopes = branches.map((_, i) => new Scope(`${path}/${kind === 'race' ? 'b' : ''}${i}`, scope))
    let first: Ended | undefined
    let running = branches.length
    for (const [i, body] of branches.entries())
      this.#begin(play(body, scopes[i] as Scope), (ended) => {
        running -= 1
        const decides = first === undefined && (kind === 'race' || ended.error !== undefined)
        if (decides) {
          first = ended
          for (const other of scopes) if (kind !== 'race' || other !== scopes[i]) this.#endScope(other)
        }
        if (running === 0) playing(first ?? {})
      })
  }

  /** What only waits in a scope is rejected; a step is answered, because whether it acts is in no log. */
  #endScope(scope: Scope): void {
    scope.isEnded = true
    for (const [address, { call, playing }] of this.#pending) {
      if (!call.scope.isAborted || call.deed.verb === 'step' || this.#rejected.has(address)) continue
      this.#pending.delete(address)
      this.#rejected.add(address)
      this.#queue.push(() => playing({ error: new Thrown(null) }))
    }
  }
}

type Thread = (ended: Ended) => void

function nameOf(deed: Deed): string {
  if (deed.verb === 'step') return 's'
  if (deed.verb === 'sleep') return ''
  return deed.verb === 'wait' ? deed.event : deed.name
}

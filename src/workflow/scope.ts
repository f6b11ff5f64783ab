import { escapeKey, hash128, joinAddress } from '../reactive/replay/address.js'

/** What an operation is; the first part of its address. */
export type OperationKind = 'step' | 'tx' | 'sleep' | 'wait' | 'call' | 'enqueue' | 'results'
export type ScopeKind = 'all' | 'each' | 'race' | 'cleanup'

/** Scopes within scopes. */
export const SCOPES_MAX = 32

/**
 * Where operations are counted: the body, or one branch of it. An address is `scope/kind:name#n`, where `n` counts earlier
 * operations of the same kind and name in the scope, so that two runs that take the same path give the same addresses. A
 * scope is known by the `w` that its code was given; no async context decides it.
 */
export class Scope {
  readonly path: string
  readonly parent: Scope | undefined
  readonly depth: number
  /** The scope of a cleanup: an abort of the scopes around it does not reach it. */
  readonly isShield: boolean
  /** Why its verbs reject; undefined while they work. */
  #aborted: Error | undefined
  readonly #counts = new Map<string, number>()
  #draws = 0

  constructor(path: string, parent?: Scope, isShield = false) {
    this.path = path
    this.parent = parent
    this.depth = parent === undefined ? 0 : parent.depth + 1
    this.isShield = isShield
  }

  /** The address of the next operation, or the path of the next combinator, of this kind and name. */
  next(kind: OperationKind | ScopeKind, name: string, key?: string): string {
    const counted = `${kind}:${nameAndKey(name, key)}`
    const n = this.#counts.get(counted) ?? 0
    this.#counts.set(counted, n + 1)
    return joinAddress(this.path, `/${counted}#${n}`)
  }

  branch(path: string, name: string): Scope {
    return new Scope(joinAddress(path, `/${escapeKey(name)}`), this)
  }

  keyedBranch(path: string, key: string): Scope {
    return new Scope(joinAddress(path, `/=${escapeKey(key)}`), this)
  }

  cleanup(): Scope {
    return new Scope(this.next('cleanup', ''), this, true)
  }

  abort(reason: Error): void {
    this.#aborted ??= reason
  }

  /** Why the verbs of this scope reject: its own reason, else that of a scope around it, up to the nearest cleanup. */
  get abortReason(): Error | undefined {
    return this.#aborted ?? (this.isShield ? undefined : this.parent?.abortReason)
  }

  /** Whether an abort of `outer` reaches this scope. */
  isUnder(outer: Scope): boolean {
    return this === outer || (!this.isShield && this.parent?.isUnder(outer) === true)
  }

  /** 128 bits in hex, the same on every replay: of the run, this scope and how often it has drawn before. */
  draw(seed: string): string {
    const n = this.#draws
    this.#draws += 1
    return hash128(`${seed}|${this.path}|${n}`)
  }
}

/** The first `=` ends the name, so a name may not contain one. */
function nameAndKey(name: string, key: string | undefined): string {
  const escaped = escapeKey(name).replaceAll('=', '%3d')
  return key === undefined ? escaped : `${escaped}=${escapeKey(key)}`
}

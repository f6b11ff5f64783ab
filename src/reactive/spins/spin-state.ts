import type { Handle } from '../graph/cell.js'
import type { EffectNode } from '../graph/effect.js'
import type { Write } from '../graph/graph.js'
import { ObserverNode } from '../graph/graph.js'
import type { SpinNode } from './spin.js'

/** What few spins have. */
class RareState {
  captures: readonly unknown[] | undefined = undefined
  children: Map<string, SpinNode> | undefined = undefined
  cells: Map<string, Handle> | undefined = undefined
  owned: EffectNode[] | undefined = undefined
  isSpent: ((value: unknown) => boolean) | undefined = undefined
  causingWrite: Write | undefined = undefined
  reportedStamp = 0
  unwinding = 0
}

/**
 * The part of a spin's state that most spins do not have: a program may keep very many idle spins. It is in an object of
 * its own, which the first value other than `undefined` creates; booleans are flags.
 */
export abstract class SpinState extends ObserverNode {
  #rare: RareState | undefined = undefined

  /** The `deps` option: the values that the closure depends on, as its author declares. */
  get captures(): readonly unknown[] | undefined {
    return this.#rare?.captures
  }

  set captures(captures: readonly unknown[] | undefined) {
    this.setRare('captures', captures)
  }

  /** Spins created in its body, by address. */
  get children(): Map<string, SpinNode> | undefined {
    return this.#rare?.children
  }

  set children(children: Map<string, SpinNode> | undefined) {
    this.setRare('children', children)
  }

  /** Cells created in its body, by address. */
  get cells(): Map<string, Handle> | undefined {
    return this.#rare?.cells
  }

  set cells(cells: Map<string, Handle> | undefined) {
    this.setRare('cells', cells)
  }

  /** Effects that its last run created; the next run disposes them. */
  get owned(): EffectNode[] | undefined {
    return this.#rare?.owned
  }

  set owned(owned: EffectNode[] | undefined) {
    this.setRare('owned', owned)
  }

  /** For a result that can be used up, like a permit: a wait then checks it in each run and records nothing. */
  get isSpent(): ((value: unknown) => boolean) | undefined {
    return this.#rare?.isSpent
  }

  set isSpent(isSpent: ((value: unknown) => boolean) | undefined) {
    this.setRare('isSpent', isSpent)
  }

  /** The write that caused its last event. */
  get causingWrite(): Write | undefined {
    return this.#rare?.causingWrite
  }

  set causingWrite(write: Write | undefined) {
    this.setRare('causingWrite', write)
  }

  /** The stamp of the error that was reported because no caller waited for it. */
  get reportedStamp(): number {
    return this.#rare?.reportedStamp ?? 0
  }

  set reportedStamp(stamp: number) {
    ;(this.#rare ??= new RareState()).reportedStamp = stamp
  }

  /** How many cancelled runs of it are cleaning up, or are about to. */
  get unwinding(): number {
    return this.#rare?.unwinding ?? 0
  }

  set unwinding(count: number) {
    ;(this.#rare ??= new RareState()).unwinding = count
  }

  /** The body is known to return a generator. */
  get isBodyChecked(): boolean {
    return (this.flags & BODY_CHECKED) !== 0
  }

  set isBodyChecked(isChecked: boolean) {
    this.setFlag(BODY_CHECKED, isChecked)
  }

  /** Other spins could not be validated because of it; they are settled when this one is found valid. */
  get hasBlocked(): boolean {
    return (this.flags & HAS_BLOCKED) !== 0
  }

  set hasBlocked(hasBlocked: boolean) {
    this.setFlag(HAS_BLOCKED, hasBlocked)
  }

  get isOnStack(): boolean {
    return (this.flags & ON_STACK) !== 0
  }

  set isOnStack(isOnStack: boolean) {
    this.setFlag(ON_STACK, isOnStack)
  }

  /** Its log is being validated and a dependency is settled first: whether it is out of date is not known yet. */
  get isBeingChecked(): boolean {
    return (this.flags & BEING_CHECKED) !== 0
  }

  set isBeingChecked(isChecked: boolean) {
    this.setFlag(BEING_CHECKED, isChecked)
  }

  private setRare<K extends keyof RareState>(name: K, value: RareState[K]): void {
    if (value === undefined && this.#rare === undefined) return
    this.#rare ??= new RareState()
    this.#rare[name] = value
  }

  private setFlag(flag: number, isSet: boolean): void {
    this.flags = isSet ? this.flags | flag : this.flags & ~flag
  }
}

/** Flags that only spins have; the others are in `graph.ts`. */
const BODY_CHECKED = 1 << 20
const HAS_BLOCKED = 1 << 21
const ON_STACK = 1 << 22
const BEING_CHECKED = 1 << 23

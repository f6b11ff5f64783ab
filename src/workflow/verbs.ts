import { StepNestedError } from '../errors.js'
import { hash128 } from '../reactive/replay/address.js'
import { runAll, runRace } from './branches.js'
import {
  branchesOf,
  checkCall,
  checkEach,
  checkName,
  checkSleep,
  checkSleepUntil,
  checkStep,
  checkVersion,
  checkWait,
  checkWork,
} from './check-verbs.js'
import type { Driver } from './driver.js'
import { handleRejection, rejected } from './operation.js'
import type { Scope } from './scope.js'
import type { Branch, Restart, StepContext, StepOptions, Work } from './work.js'

/** Hex digits of a random number: 52 bits, the precision of a number below 1. */
const RANDOM_DIGITS = 13

/** The value of `w.restart(input)`: the body must return it. */
export class RestartRequest {
  readonly input: unknown
  constructor(input: unknown) {
    this.input = input
  }
}

/** The verbs of one scope: the `w` of the body, or of a branch. Bad arguments reject, and no operation exists then. */
export class WorkVerbs implements Work {
  readonly #driver: Driver
  readonly #scope: Scope

  constructor(driver: Driver, scope: Scope) {
    this.#driver = driver
    this.#scope = scope
  }

  get id(): string {
    return this.#driver.workflow.id
  }
  get run(): number {
    return this.#driver.run
  }
  get steps(): number {
    return this.#driver.steps
  }

  step<T>(
    name: string,
    given: StepOptions | ((s: StepContext) => T),
    act?: (s: StepContext) => T,
  ): Promise<Awaited<T>> {
    return this.#operation('step', () => {
      const { deed, key } = checkStep(name, given, act)
      return this.#driver.call('step', this.#scope, name, deed, key)
    }) as Promise<Awaited<T>>
  }

  transaction<T, Tx>(name: string, work: (tx: Tx) => T): Promise<Awaited<T>> {
    return this.#operation('transaction', () => {
      checkName('transaction', name)
      checkWork('transaction', work)
      return this.#driver.call('transaction', this.#scope, name, { kind: 'tx', work: work as (tx: unknown) => T })
    }) as Promise<Awaited<T>>
  }

  sleep(span: unknown, options?: { readonly name?: string | undefined }): Promise<void> {
    return this.#operation('sleep', () => {
      const { name, deed } = checkSleep(span, options)
      return this.#driver.call('sleep', this.#scope, name, deed)
    }) as Promise<void>
  }

  sleepUntil(instant: Date | string, options?: { readonly name?: string | undefined }): Promise<void> {
    return this.#operation('sleepUntil', () => {
      const { name, deed } = checkSleepUntil(instant, options)
      return this.#driver.call('sleepUntil', this.#scope, name, deed)
    }) as Promise<void>
  }

  waitFor(event: unknown, options?: unknown): Promise<never> {
    return this.#operation('waitFor', () => {
      const { name, deed } = checkWait(event, options, this.#driver.workflow)
      return this.#driver.call('waitFor', this.#scope, name, deed)
    }) as Promise<never>
  }

  call(job: unknown, payload?: unknown, options?: unknown): Promise<never> {
    return this.#operation('call', () => {
      const { name, deed } = checkCall('call', job, payload, options)
      return this.#driver.call('call', this.#scope, name, deed)
    }) as Promise<never>
  }

  enqueue(job: unknown, payload?: unknown, options?: unknown): Promise<never> {
    return this.#operation('enqueue', () => {
      const { name, deed } = checkCall('enqueue', job, payload, options)
      return this.#driver.call('enqueue', this.#scope, name, deed)
    }) as Promise<never>
  }

  results(parent: never): Promise<never> {
    return this.#operation('results', () => {
      const { name, deed } = checkCall('results', parent, undefined, undefined)
      return this.#driver.call('results', this.#scope, name, { kind: 'results', parent: deed.job })
    }) as Promise<never>
  }

  all(branches: unknown, options?: unknown): Promise<never> {
    return this.#scoped('all', async () => {
      const { entries, isList, concurrency } = branchesOf('all', branches, options)
      const path = this.#scope.next('all', '')
      const runs = entries.map(([name, branch]) => this.#inBranch(path, name, branch))
      const values = await runAll(this.#driver, path, runs, concurrency)
      return (isList ? values : Object.fromEntries(entries.map(([name], i) => [name, values[i]]))) as never
    })
  }

  each<Item, T>(
    name: string,
    items: readonly Item[],
    turn: (item: Item, w: Work, index: number) => T,
    options?: unknown,
  ): Promise<Awaited<T>[]> {
    return this.#scoped('each', async () => {
      const { keys, concurrency } = checkEach(name, items, turn, options)
      if (items.length === 0) return []
      const path = this.#scope.next('each', name)
      const runs = [...items].map((item, i) => {
        const key = keys?.[i]
        const scope = key === undefined ? this.#scope.branch(path, String(i)) : this.#scope.keyedBranch(path, key)
        return { scope, run: () => turn(item, new WorkVerbs(this.#driver, scope), i) }
      })
      return (await runAll(this.#driver, path, runs, concurrency)) as Awaited<T>[]
    })
  }

  race(branches: unknown): Promise<never> {
    return this.#scoped('race', async () => {
      const { entries } = branchesOf('race', branches, undefined)
      const path = this.#scope.next('race', '')
      const runs = entries.map(([name, branch]) => this.#inBranch(path, name, branch))
      const { index, value } = await runRace(this.#driver, path, runs)
      return { won: entries[index]?.[0], value } as never
    })
  }

  cleanup<T>(work: (w: Work) => T): Promise<Awaited<T>> {
    return this.#verb('cleanup', async (): Promise<unknown> => {
      checkWork('cleanup', work)
      // A cleanup works in an aborted scope too, and what refuses it otherwise is that of its own scope.
      const scope = this.#scope.cleanup()
      return this.#driver.refusal('cleanup', scope) ?? work(new WorkVerbs(this.#driver, scope))
    }) as Promise<Awaited<T>>
  }

  version(id: string, latest = 1): number {
    this.#driver.refuseOver('version')
    checkVersion(id, latest)
    return this.#driver.version(id, latest)
  }

  now(): Date {
    this.#driver.refuseOver('now')
    return new Date(this.#driver.givenAt)
  }

  random(): number {
    return parseInt(this.#draw('random').slice(0, RANDOM_DIGITS), 16) / 16 ** RANDOM_DIGITS
  }

  uuid(): string {
    const hex = this.#draw('uuid')
    const variant = ((parseInt(hex[16] as string, 16) & 3) | 8).toString(16)
    return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20, 32)}`
  }

  log(...parts: readonly unknown[]): void {
    this.#driver.log(parts)
  }

  progress(done: number, total?: number): void {
    this.#driver.progress(done, total)
  }

  restart(input: never): Restart {
    this.#driver.refuseOver('restart')
    const request = new RestartRequest(input)
    this.#driver.requestRestart(request)
    return request as unknown as Restart
  }

  #draw(verb: string): string {
    this.#driver.refuseOver(verb)
    return this.#scope.draw(hash128(`${this.id}|${this.run}`))
  }

  #inBranch(path: string, name: string, branch: Branch): { scope: Scope; run: () => unknown } {
    const scope = this.#scope.branch(path, name)
    return { scope, run: () => branch(new WorkVerbs(this.#driver, scope)) }
  }

  /** A combinator is refused where any verb of its scope is. */
  #scoped<T>(verb: string, call: () => Promise<T>): Promise<T> {
    return this.#verb(verb, () => this.#driver.refusal(verb, this.#scope) ?? call())
  }

  #verb<T>(verb: string, call: () => Promise<T>): Promise<T> {
    const promise = this.#operation(verb, call)
    handleRejection(promise)
    return promise
  }

  /** The rejection of an operation is handled where that is made. */
  #operation<T>(verb: string, call: () => Promise<T>): Promise<T> {
    if (this.#driver.host.isInsideStep()) return rejected(new StepNestedError(verb))
    try {
      return call()
    } catch (error) {
      return rejected(error)
    }
  }
}

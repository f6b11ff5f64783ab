import { RaceLostError, SiblingFailedError } from '../errors.js'
import type { Driver } from './driver.js'
import type { Scope } from './scope.js'

/** A branch that has not begun: its scope, and how to call it. */
export interface BranchRun {
  readonly scope: Scope
  readonly run: () => unknown
}

/**
 * Runs branches, at most so many at a time, and waits until every one that began has ended. When one fails the others are
 * aborted, no other begins, and the first error is thrown. All of it happens within the turns of the answers.
 */
export function runAll(
  driver: Driver,
  path: string,
  branches: readonly BranchRun[],
  concurrency: number,
): Promise<unknown[]> {
  const values: unknown[] = new Array(branches.length)
  let failed: { readonly error: unknown } | undefined
  let [next, running] = [0, 0]
  return new Promise((resolve, reject) => {
    const ended = (): void => {
      running -= 1
      begin()
      if (running > 0) return
      if (failed === undefined) resolve(values)
      else reject(failed.error as Error)
    }
    const fail = (error: unknown): void => {
      if (failed === undefined) {
        failed = { error }
        for (const { scope } of branches) driver.abort(scope, new SiblingFailedError(path))
      }
      ended()
    }
    const begin = (): void => {
      while (failed === undefined && running < concurrency && next < branches.length) {
        const index = next
        next += 1
        running += 1
        called(branches[index] as BranchRun).then((value) => {
          values[index] = value
          ended()
        }, fail)
      }
    }
    begin()
    if (branches.length === 0) resolve(values)
  })
}

/** The first branch to end wins, by returning or throwing. It settles when the others have unwound. */
export function runRace(
  driver: Driver,
  path: string,
  branches: readonly BranchRun[],
): Promise<{ readonly index: number; readonly value: unknown }> {
  let won: { readonly index: number; readonly value?: unknown; readonly thrown?: { error: unknown } } | undefined
  let running = branches.length
  return new Promise((resolve, reject) => {
    const ended = (result: NonNullable<typeof won>): void => {
      running -= 1
      if (won === undefined) {
        won = result
        for (const [i, { scope }] of branches.entries())
          if (i !== result.index) driver.abort(scope, new RaceLostError(path))
      }
      if (running > 0) return
      if (won.thrown === undefined) resolve({ index: won.index, value: won.value })
      else reject(won.thrown.error as Error)
    }
    for (const [index, branch] of branches.entries())
      called(branch).then(
        (value) => ended({ index, value }),
        (error: unknown) => ended({ index, thrown: { error } }),
      )
  })
}

function called({ run }: BranchRun): Promise<unknown> {
  return new Promise((resolve) => resolve(run()))
}

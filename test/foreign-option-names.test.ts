import { describe, expect, test } from 'vitest'
import { checkFilter } from '../src/client/check-arguments.js'
import { checkMillOptions, deadlineOf } from '../src/mill/options.js'
import { checkRecurring } from '../src/schedule/check.js'
import type { InvalidOptionsError, Problem } from '../src/errors.js'
import { checkEnqueueOptions, checkJobOptions } from '../src/job/definition/check-options.js'
import * as foreignNames from '../src/job/definition/foreign-option-names.js'

/** Options as users of other libraries write them: each error gives the name here. */

const problemsOf = (call: () => unknown): readonly Problem[] => {
  try {
    call()
    return []
  } catch (error) {
    return (error as InvalidOptionsError).problems
  }
}
const said = (problems: readonly Problem[]): string =>
  problems.map(({ path, message }) => `${path} ${message}`).join('\n')

describe('an enqueue', () => {
  test.each([
    // BullMQ
    ['delay', 'use in'],
    ['attempts', 'use retry: { limit }'],
    ['backoff', 'use retry: { backoff'],
    ['jobId', 'use key'],
    ['lifo', 'use priority'],
    ['repeat', 'call mill.recurring('],
    ['removeOnComplete', 'use keep'],
    ['removeOnFail', 'use keep'],
    ['deduplication', 'use unique'],
    ['parent', 'use after'],
    // pg-boss
    ['startAfter', 'use at'],
    ['singletonKey', 'use key'],
    ['singletonSeconds', 'use unique'],
    ['retryLimit', 'use retry: { limit }'],
    ['retryDelay', 'use retry: { backoff: { start'],
    ['retryBackoff', 'use retry: { backoff'],
    ['expireInSeconds', 'use timeout'],
    ['deadLetter', 'a job that failed for good stays, in state failed: mill.find('],
    ['db', 'use tx'],
    // graphile-worker, Agenda, bee-queue
    ['runAt', 'use at'],
    ['queueName', 'use queue'],
    ['maxAttempts', 'use retry: { limit }'],
    ['jobKey', 'use key'],
    ['flags', 'use labels'],
    ['repeatEvery', 'call mill.recurring('],
    ['delayUntil', 'use at'],
  ])('with %s is refused with the advice: %s', (name, advice) => {
    expect(said(checkEnqueueOptions({ [name]: 1 }, 'options'))).toContain(`options.${name} is not an option; ${advice}`)
  })

  test.each([
    ['5m', '{ in: "5m" }'],
    [500, '{ in: 500 }'],
    [new Date(), '{ at: … }'],
  ])('with %s in place of options is refused with the advice %s', (options, meant) => {
    expect(said(checkEnqueueOptions(options, 'options'))).toContain(`did you mean ${meant}?`)
  })
})

test.each([
  [{ handler: () => 1 }, 'handler is not an option; use run'],
  [{ schema: {} }, 'schema is not an option; use input'],
  [{ concurrency: 5 }, 'concurrency is not an option; use millrace({ queues'],
  [{ limiter: { max: 1 } }, 'limiter is not an option; use rate: { max'],
  [{ retry: { attempts: 3 } }, 'retry.attempts is not an option; use limit'],
  [{ retry: { backoff: { delay: 1 } } }, 'retry.backoff.delay is not an option; use start'],
  [{ keep: { age: 5 } }, 'keep.age is not an option; write a duration'],
  [{ unique: { ttl: 5 } }, 'unique.ttl is not an option; use for'],
])('a job with %j is refused with the name here', (options, advice) => {
  expect(said(checkJobOptions(options))).toContain(advice)
})

test.each([
  ['connection', 'use store'],
  ['schema', 'use store: "postgres://…?schema=jobs"'],
  ['taskList', 'use jobs'],
  ['pollingIntervalSeconds', 'use poll'],
  ['lockDuration', 'use lease'],
  ['maxStalledCount', 'use crashBudget'],
  ['defaultJobOptions', 'use retry, timeout and keep'],
  ['limiter', 'use rate: { max'],
])('millrace() with %s is refused with the advice: %s', (name, advice) => {
  expect(said(problemsOf(() => checkMillOptions({ [name]: 1 }, 'x')))).toContain(`${name} is not an option; ${advice}`)
})

test.each([
  ['tz', 'use timezone'],
  ['pattern', 'the rule is the fourth argument'],
  ['startDate', 'use from'],
  ['limiter', 'use rate: { max'],
  ['jobId', 'the id is the first argument'],
])('a schedule with %s is refused with the advice: %s', (name, advice) => {
  const { problems } = checkRecurring('id', '0 9 * * *', { [name]: 1 })
  expect(said(problems)).toContain(`options.${name} is not an option; ${advice}`)
})

test.each([
  ['status', 'use state'],
  ['offset', 'find() reads page by page'],
  ['tags', 'use label'],
  ['settledAfter', 'jobs are found in the order of their enqueue: narrow by state and createdAfter'],
  ['groupBy', 'call count() once for each value'],
])('a filter with %s is refused with the advice: %s', (name, advice) => {
  expect(said(checkFilter({ [name]: 1 }))).toContain(`${name} is not an option; ${advice}`)
})

test('a stop with timeout, or with a time alone, is refused with the advice to use deadline', () => {
  expect(said(problemsOf(() => deadlineOf({ timeout: 5 } as never, 'stop()')))).toContain('use deadline')
  expect(said(problemsOf(() => deadlineOf(5_000 as never, 'stop()')))).toContain('did you mean { deadline: 5000 }?')
})

test('each advice is one line that says what to use, call or write', () => {
  for (const table of Object.values(foreignNames))
    for (const [name, advice] of Object.entries(table)) {
      expect(name).toMatch(/^[a-z]\w*$/i)
      expect(advice).not.toContain('\n')
    }
})

import { event, job, workflow } from '../index.js'
import type { Event, Job, StandardSchema, Work } from '../index.js'

/** Types are tested by compiling: `expectType` fails to compile when the types differ. */
function expectType<Expected>(): <Actual>(
  value: [Actual] extends [Expected] ? ([Expected] extends [Actual] ? Actual : never) : never,
) => void {
  return () => undefined
}

interface User {
  readonly id: string
}

// 1. Steps, time, a person.
export const onboard = workflow('onboard', async (user: User, w) => {
  const account = await w.step('create', () => ({ id: user.id, at: new Date() }))
  expectType<{ id: string; at: Date }>()(account)
  await w.sleep('3d')
  const paid = await w.step('charge', { retry: { limit: 3 } }, async (s) => s.id.length)
  expectType<number>()(paid)
  return account.id
})
expectType<Job<User, string>>()(onboard)

// 2. A decision of a human.
export const approved = event<{ by: string; yes: boolean }>('approved')
expectType<Event<{ by: string; yes: boolean }>>()(approved)
export const parsed = event('parsed', {} as StandardSchema<string, number>)
export const refund = workflow('refund', async (_: undefined, w) => {
  const answer = await w.waitFor(approved, { timeout: '7d' })
  expectType<{ by: string; yes: boolean }>()(answer)
  expectType<number>()(await w.waitFor(parsed))
  return answer.yes
})
expectType<Job<undefined, boolean>>()(refund)

// 3 to 7. Transactions, branches, calls, undoing.
const makeInvoice = job('invoice', (p: { order: string }) => p.order.length)
const nothing = job('nothing', () => 'x')
export const all = workflow('all', async (order: string, w) => {
  expectType<number>()(await w.transaction('book', () => 5))
  const { stock, price } = await w.all({ stock: (one) => one.step('s', () => 1), price: () => 'high' as string })
  expectType<[number, string]>()([stock, price])
  const [a, b] = await w.all([(one) => one.step('s', () => 1), async () => 'x' as string])
  expectType<[number, string]>()([a, b])
  const pages = await w.each('page', ['u'], (url, one, i) => one.step('load', () => url + i), { key: (url) => url })
  expectType<string[]>()(pages)
  const first = await w.race({ reply: (one) => one.waitFor(approved), late: (one) => one.sleep('7d') })
  if (first.won === 'reply') expectType<{ by: string; yes: boolean }>()(first.value)
  expectType<number>()(await w.call(makeInvoice, { order }))
  expectType<string>()(await w.call(nothing))
  expectType<string>()((await w.enqueue(makeInvoice, { order }, { key: 'k' })).id)
  return w.cleanup((one) => one.step('release', () => true))
})
expectType<Job<string, boolean>>()(all)

// 9. Without end: the result type leaves the restart out.
export const poll = workflow('poll', async (state: number, w) => {
  if (state > 5) return 'end' as string
  return w.restart(state + 1)
})
expectType<Job<number, string>>()(poll)

// Helpers take `w: Work`, whatever the input of the workflow.
async function pay(w: Work, amount: number): Promise<string> {
  return w.step('pay', () => String(amount))
}
export const paying = workflow('paying', async (amount: number, w) => pay(w, amount))

// A schema: enqueued as its input, given to the body as its output.
export const checked = workflow('checked', {
  input: {} as StandardSchema<{ at: string }, { at: Date }>,
  deadline: '1d',
  events: [approved],
  run: async (input, w) => {
    expectType<Date>()(input.at)
    return w.run
  },
})
expectType<Job<{ at: string }, number>>()(checked)

// Misuses.
export const misuses = workflow('misuses', async (n: number, w) => {
  // @ts-expect-error -- a step needs its function
  await w.step('x', { retry: { limit: 1 } })
  // @ts-expect-error -- an unknown option
  await w.step('x', { retries: 1 }, () => 1)
  // @ts-expect-error -- not a duration
  await w.sleep('3 fortnights')
  // @ts-expect-error -- an event, not its name
  await w.waitFor('approved')
  // @ts-expect-error -- the payload is missing
  await w.call(makeInvoice)
  // @ts-expect-error -- the payload does not fit
  await w.call(makeInvoice, { order: 5 })
  // @ts-expect-error -- a branch is a function
  await w.all({ a: w.step('x', () => 1) })
  // @ts-expect-error -- a race is of named branches
  await w.race([(one: Work) => one.sleep(1)])
  // @ts-expect-error -- the next input does not fit
  if (n > 5) return w.restart('text')
  // @ts-expect-error -- there is no ctx
  w.settleIn({})
  // @ts-expect-error -- version takes a name
  w.version(5)
  return undefined
})
// @ts-expect-error -- a body runs in the event loop
workflow('apart', { executor: 'thread', run: async () => 1 })
// @ts-expect-error -- an unknown option
workflow('unknown', { step: 5, run: async () => 1 })

// A body that names the type of `w` takes its input from its first parameter.
export const annotated = workflow('annotated', async (user: User, w: Work) => w.step('s', () => user.id))
expectType<Job<User, string>>()(annotated)

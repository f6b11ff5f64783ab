import { createContext, iterate, mailbox, supervise, waitFor } from 'millrace/reactive'

const ctx = createContext()
const inbox = ctx.enter(() => mailbox())

// One turn per message. A finished turn is dropped from the log, so this can run for years.
const worker = {
  key: 'worker',
  body: () =>
    iterate(1, function* (count) {
      const order = yield* waitFor(inbox)
      if (order === undefined) return { done: count }
      if (order.amount < 0) throw new Error(`order ${order.id}: negative amount`)
      console.log(`${count}: order ${order.id} for ${order.amount}`)
      return { next: count + 1 }
    }),
}

// A worker that fails is restarted; the message it failed on is lost, the next ones are not.
const done = ctx.run(ctx.enter(() => supervise([worker], { maxRestarts: 3 })))

ctx.enter(() => {
  inbox.post({ id: 'a', amount: 10 })
  inbox.post({ id: 'b', amount: -1 })
  inbox.post({ id: 'c', amount: 30 })
  inbox.post(undefined)
})

await done
// -> 1: order a for 10
// -> 1: order c for 30

await ctx.close()

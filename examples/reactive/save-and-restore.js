import {
  createSimulation,
  deserialize,
  iterate,
  mailbox,
  restore,
  signal,
  sleep,
  spin,
  step,
  waitFor,
} from 'millrace/reactive'

// The program: it runs at the first start, and again when it is restored. Each cell has a key.
function build(ctx) {
  const inbox = mailbox({ key: 'inbox' })
  const sent = signal(0, { key: 'sent' })
  const mailer = spin(
    () =>
      iterate(1, function* (number) {
        const to = yield* waitFor(inbox)
        const id = yield* step('send', () => {
          console.log(`sends ${number} to ${to}`)
          return `id-${number}`
        })
        yield* waitFor(sleep(60_000)) // at most one a minute
        sent.set(number)
        console.log(`${id} is a minute old`)
        return { next: number + 1 }
      }),
    { key: 'mailer' },
  )
  ctx.spawn(mailer)
  return { inbox, sent }
}

const ctx = createSimulation()
const before = ctx.enter(() => build(ctx))
before.inbox.post('ann')
before.inbox.post('bob')
// -> sends 1 to ann

ctx.advanceBy(45_000)
const text = ctx.snapshot().serialize() // for a file or a database
await ctx.close()

let after
const again = restore(deserialize(text), { build: (restored) => (after = build(restored)) })
console.log(`after the restart ${after.inbox.size} waits, and ${again.inspect().timers} timer is armed`)
// -> after the restart 1 waits, and 1 timer is armed

again.advanceBy(15_000) // the rest of the minute
// -> id-1 is a minute old
// -> sends 2 to bob

console.log(`sent: ${after.sent.get()}`)
// -> sent: 1

await again.close()

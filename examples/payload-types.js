// What a payload may hold, how it is stored, and what is refused.
import { codec, job, millrace } from 'millrace'
import { freshFile } from './fresh-file.js'

class Money {
  constructor(cents, currency) {
    this.cents = cents
    this.currency = currency
  }
}

// Your own types: how to recognise one, how to write it as simpler values, how to read it back.
const shop = codec({
  types: {
    money: {
      is: (value) => value instanceof Money,
      write: ({ cents, currency }) => [cents, currency],
      read: ([cents, currency]) => new Money(cents, currency),
    },
  },
})

const bill = job('bill', async (p) => ({
  dueYear: p.due.getUTCFullYear(),
  tags: [...p.tags],
  rate: p.rates.get('NOK'),
  host: p.link.host,
  bytes: p.logo.length,
  next: p.serial + 1n,
  price: p.price instanceof Money,
}))

const mill = await millrace({ store: freshFile(), jobs: [bill], codec: shop, logger: false })
await mill.start()

const handle = await mill.enqueue(bill, {
  due: new Date('2027-01-31T12:00:00Z'),
  tags: new Set(['new', 'paid']),
  rates: new Map([['NOK', 11.7]]),
  link: new URL('https://example.com/bill/7'),
  logo: new Uint8Array([1, 2, 3]),
  serial: 12345678901234567890n,
  price: new Money(4999, 'EUR'),
})
console.log(await handle.result({ timeout: '10s' }))

// It is readable text in the database: plain JSON, with a tag only for values that JSON does not have.
console.log(shop.encode({ to: 'ada', at: new Date(0), price: new Money(5, 'EUR') }))

// What cannot be read back is refused before anything is written, with its path.
for (const wrong of [{ on: { done: () => 1 } }, { user: new (class User {})() }]) {
  await mill.enqueue(bill, wrong).catch((error) => console.log(error.code, 'at', error.problems[0].path))
}
await mill.close()

// prints: {
// prints:   dueYear: 2027,
// prints:   tags: [ 'new', 'paid' ],
// prints:   rate: 11.7,
// prints:   host: 'example.com',
// prints:   bytes: 3,
// prints:   next: 12345678901234567891n,
// prints:   price: true
// prints: }
// prints: {"to":"ada","at":{"$":"Date","v":"1970-01-01T00:00:00.000Z"},"price":{"$":"money","v":[5,"EUR"]}}
// prints: E_INVALID_PAYLOAD at payload.on.done
// prints: E_INVALID_PAYLOAD at payload.user

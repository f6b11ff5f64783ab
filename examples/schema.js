// A payload is checked when it is enqueued. Any Standard Schema works: zod, valibot, arktype, or this one made by hand.
import { job, millrace } from 'millrace'
import { freshFile } from './fresh-file.js'

/** The whole interface: `~standard.validate` returns a value, or issues with their paths. */
const orderSchema = {
  '~standard': {
    version: 1,
    vendor: 'handmade',
    validate(value) {
      const issues = []
      if (typeof value?.email !== 'string' || !value.email.includes('@'))
        issues.push({ path: ['email'], message: 'must be an e-mail address' })
      for (const [index, item] of (value?.items ?? []).entries())
        if (!(item.count > 0)) issues.push({ path: ['items', index, 'count'], message: 'must be 1 or more' })
      if (issues.length > 0) return { issues }
      return { value: { ...value, currency: value.currency ?? 'EUR' } } // a default, filled in at each attempt
    },
  },
}

const placeOrder = job('place-order', {
  input: orderSchema,
  run: async (order) => `${order.items.length} item in ${order.currency} for ${order.email}`,
})

const mill = await millrace({ store: freshFile(), jobs: [placeOrder], logger: false })
await mill.start()

const good = await mill.enqueue(placeOrder, { email: 'ada@example.com', items: [{ count: 2 }] })
console.log(await good.result({ timeout: '10s' }))

// Stored as it was given: the default is not in it.
console.log('stored:', JSON.stringify((await good.get()).payload))

try {
  await mill.enqueue(placeOrder, { email: 'nobody', items: [{ count: 1 }, { count: 0 }] })
} catch (error) {
  console.log(error.code)
  for (const problem of error.problems) console.log(' ', problem.path, problem.message)
}

// In a bulk the index is named, and nothing of the bulk is written.
const bulk = [
  { email: 'a@example.com', items: [] },
  { email: 'b', items: [] },
]
await mill
  .enqueueMany(placeOrder, bulk)
  .catch((error) => console.log(error.problems[0].path, error.problems[0].message))

let count = 0
for await (const record of mill.find({ job: placeOrder })) count += record.job === placeOrder.name ? 1 : 0
console.log('jobs in the store:', count)
await mill.close()

// prints: 1 item in EUR for ada@example.com
// prints: stored: {"email":"ada@example.com","items":[{"count":2}]}
// prints: E_INVALID_PAYLOAD
// prints:   payload.email must be an e-mail address
// prints:   payload.items[1].count must be 1 or more
// prints: payloads[1].email must be an e-mail address
// prints: jobs in the store: 1

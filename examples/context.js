// Context stored with a job: captured where it is enqueued, restored where it runs and where its errors are logged.
import { AsyncLocalStorage } from 'node:async_hooks'
import { job, millrace } from 'millrace'
import { freshFile } from './fresh-file.js'

const tenant = new AsyncLocalStorage()

const sendMail = job('send-mail', async ({ to }) => `mail to ${to}, for ${tenant.getStore()}`)

const invoice = job('invoice', {
  run: async ({ order }, ctx) => {
    if (order === 13) throw new Error('order 13 is cursed')
    // A child captures the context of its parent.
    const mail = await ctx.enqueue(sendMail, { to: 'billing' })
    return mail.id
  },
  retry: { limit: 0 },
})

// A logger that reads the storage gets the tenant of the job of its line.
const lines = []
const say = (_, message) => lines.push(`[${tenant.getStore()}] ${message}`)
const logger = { debug() {}, info() {}, warn: say, error: say }

const store = freshFile()
const jobs = [sendMail, invoice]
const mill = await millrace({ store, jobs, capture: { tenant }, logger })
await mill.start()

const forAcme = await tenant.run('acme', () => mill.enqueue(invoice, { order: 7 }))
const mailId = await forAcme.result({ timeout: '10s' })
console.log(await mill.handle(mailId).result({ timeout: '10s' }))

const cursed = await tenant.run('globex', () => mill.enqueue(invoice, { order: 13 }))
await cursed.result({ timeout: '10s' }).catch((error) => console.log(error.cause.message))
console.log('captured:', (await cursed.get()).captured)

// Enqueued without a tenant: the handler has none either.
const nobody = await mill.enqueue(sendMail, { to: 'all' })
console.log(await nobody.result({ timeout: '10s' }))

// A value that cannot be written is refused with its path, and nothing is enqueued.
await tenant
  .run({ name: 'acme', db: { query: () => [] } }, () => mill.enqueue(sendMail, { to: 'ada' }))
  .catch((error) => console.log(error.code, error.problems[0].path))

await mill.close()
console.log(lines.join('\n'))

// prints: mail to billing, for acme
// prints: order 13 is cursed
// prints: captured: { tenant: 'globex' }
// prints: mail to all, for undefined
// prints: E_INVALID_OPTIONS captured.tenant.db.query
// prints: [globex] failed invoice

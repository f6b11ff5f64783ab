// A job and its data in one commit: both exist, or neither.
import { job, millrace, sqlite } from 'millrace'
import { freshFile } from './fresh-file.js'

// Node's own SQLite where there is one, else the package that Millrace uses on Node 20. better-sqlite3 and libsql work too.
const { DatabaseSync } = process.getBuiltinModule?.('node:sqlite') ?? (await import('@photostructure/sqlite'))

const db = new DatabaseSync(freshFile())
db.exec('pragma journal_mode = wal; create table orders (id integer primary key, state text)')
const orders = () =>
  db
    .prepare('select id, state from orders')
    .all()
    .map(({ id, state }) => `${id} ${state}`)
    .join(', ')

// ctx.transaction: the writes of the function and the settlement of the job are one commit.
const ship = job('ship', (p, ctx) =>
  ctx.transaction((tx) => {
    tx.prepare(`update orders set state = 'shipped' where id = ?`).run(p.id)
    ctx.enqueue(thank, { id: p.id }, { tx })
    return `order ${p.id} is shipped`
  }),
)
const thank = job('thank', (p) => `thank you for order ${p.id}`)

// The mill is made with the handle, so that both use one SQLite library.
const mill = await millrace({ store: sqlite(db), jobs: [ship, thank], logger: false })
await mill.start()

/** What better-sqlite3 calls db.transaction(fn). */
function transaction(work) {
  db.exec('begin immediate')
  try {
    const value = work()
    db.exec('commit')
    return value
  } catch (error) {
    db.exec('rollback')
    throw error
  }
}

const place = (id, { fails }) =>
  transaction(() => {
    db.prepare(`insert into orders values (?, 'placed')`).run(id)
    const handle = mill.enqueue(ship, { id }, { tx: db }) // Written at once; a refusal would be thrown here.
    if (fails) throw new Error('the card was declined')
    return handle
  })

try {
  place(1, { fails: true })
} catch (error) {
  console.log(`${error.message}: ${orders() || 'no order'}`)
}

const handle = await place(2, { fails: false })
console.log(await handle.result({ timeout: '10s' }))
console.log(orders())
for await (const { job: name, payload } of mill.find({ order: 'oldest' })) console.log(name, payload.id)

await mill.close()
db.close()

// prints: the card was declined: no order
// prints: order 2 is shipped
// prints: 2 shipped
// prints: ship 2
// prints: thank 2

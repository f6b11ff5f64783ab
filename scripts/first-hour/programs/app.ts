import { job, millrace } from 'millrace'

const greet = job('greet', async (p: { name: string }) => `hello ${p.name}`)

const mill = await millrace({ store: 'jobs.db', jobs: [greet] })
const handle = await mill.enqueue(greet, { name: 'ada' })
await mill.start()
const greeting: string = await handle.result({ timeout: '20s' })
console.log(greeting)
await mill.close()

// @ts-expect-error the payload has no name
export const wrong = () => mill.enqueue(greet, {})

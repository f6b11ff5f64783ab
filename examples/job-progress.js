// The progress of a job as reactive state: a bar in the terminal, and the same bar for browsers as server-sent events.
import { once } from 'node:events'
import { createServer } from 'node:http'
import { job, millrace } from 'millrace'
import { computed, createContext, effect, signal } from 'millrace/reactive'
import { freshFile } from './fresh-file.js'

const ctx = createContext()
const { progress, bar } = ctx.enter(() => {
  const progress = signal({ done: 0, total: 4 })
  const bar = computed(() => {
    const { done, total } = progress.get()
    return `[${'#'.repeat(done)}${'.'.repeat(total - done)}] ${done} of ${total}`
  })
  effect(() => console.log(bar.get())) // the terminal
  return { progress, bar }
})

// Every browser reads the latest bar when it is ready for one; a slow one skips some, and costs no memory.
async function sendBars(response) {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  const bars = bar[Symbol.asyncIterator]()
  response.on('close', () => bars.return()) // the browser left: this ends the loop, also while no bar comes
  for await (const text of bars) {
    response.write(`data: ${text}\n\n`)
    if (progress.peek().done === progress.peek().total) break
  }
  response.end()
}

const server = createServer((request, response) => {
  sendBars(response).catch((error) => response.destroy(error))
})
await once(server.listen(0, '127.0.0.1'), 'listening')

const load = job('load', async ({ parts }, run) => {
  for (let done = 1; done <= parts; done++) {
    await new Promise((next) => setTimeout(next, 5)) // the work
    run.progress(done, parts) // for other processes: (await mill.get(id))?.progress
    progress.set({ done, total: parts }) // for this one, at once
  }
})

const mill = await millrace({ store: freshFile(), jobs: [load], logger: false })
const browser = fetch(`http://127.0.0.1:${server.address().port}`).then((response) => response.text())
const handle = await mill.enqueue(load, { parts: 4 })
await mill.start()
await handle.result({ timeout: '10s' })
console.log('the browser ends with', (await browser).trimEnd().split('\n').at(-1))

await mill.close()
server.close() // before the context: a request that comes later would find it closed
await ctx.close()

// prints: [....] 0 of 4
// prints: [#...] 1 of 4
// prints: [##..] 2 of 4
// prints: [###.] 3 of 4
// prints: [####] 4 of 4
// prints: the browser ends with data: [####] 4 of 4

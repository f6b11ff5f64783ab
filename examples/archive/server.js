// A page that archives contacts: a bar that moves, and buttons to run, pause, resume, cancel and reset.
//
//   node examples/archive/server.js [--port 8712] [--store archive.db] [--contacts 200] [--item-ms 100] [--fails-at 70]
//
// Kill it while the bar moves and start it again with the same --store: the bar goes on where it was.
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { job, millrace } from 'millrace'
import { computed } from 'millrace/reactive'
import { freshFile } from '../fresh-file.js'

const { values: given } = parseArgs({
  options: {
    port: { type: 'string', default: '8712' },
    store: { type: 'string' },
    contacts: { type: 'string', default: '200' },
    'item-ms': { type: 'string', default: '100' },
    'fails-at': { type: 'string' },
  },
})

/** The contact whose mailbox is full, the first time that it is tried. */
let isFull = Number(given['fails-at'] ?? 0)

const archive = job('archive', {
  retry: { limit: 0 },
  keep: Infinity,
  run: async ({ name }, { sequence, signal }) => {
    await sleep(Number(given['item-ms']), undefined, { signal }) // the work
    if (sequence.index + 1 === isFull) {
      isFull = 0
      throw new Error(`the mailbox of ${name} is full`)
    }
    return name
  },
})

const mill = await millrace({ store: given.store ?? freshFile(), jobs: [archive], logger: 'warn' })
const NAMES = ['Ada', 'Grace', 'Edsger', 'Barbara', 'Donald', 'Frances', 'Tony', 'Radia', 'Leslie', 'Margaret']
const contacts = Array.from({ length: Number(given.contacts) }, (_, i) => ({
  name: `${NAMES[i % NAMES.length]} ${Math.floor(i / NAMES.length) + 1}`,
}))
// While the sequence of this key is unfinished, this is that one: so a restart continues it.
const sequence = (await existing()) ?? (await mill.sequence(archive, contacts, { key: 'contacts', start: false }))

async function existing() {
  const found = mill.sequence([archive, 'contacts'])
  return (await found.progress().catch(() => undefined)) && found
}

// What every page shows, as reactive state: read from the store once however many pages are open, and not at all when none is.
const progress = sequence.watch()
const text = mill.live.context.enter(() => computed(() => JSON.stringify(seen(progress.get()))))

function seen(latest) {
  if (latest === undefined) return undefined
  const { state, requested, done, total, error } = latest
  const why = error && `Contact ${error.index + 1}: ${error.message}`
  return { state, requested, done, total, error: why, can: buttonsOf(latest) }
}

/** The verbs that apply, as docs/guides/sequences.md lists them: the other buttons are disabled. */
function buttonsOf({ state, requested }) {
  const isRunning = state === 'running'
  return {
    run: state === 'waiting',
    pause: isRunning && requested === undefined,
    resume: state === 'paused' || state === 'failed' || requested === 'pause',
    cancel: (isRunning && requested !== 'cancel') || state === 'waiting' || state === 'paused',
    reset: true,
  }
}

const VERBS = { run: 'start', pause: 'pause', resume: 'resume', cancel: 'cancel', reset: 'reset' }
const FILES = {
  '/': ['page.html', 'text/html; charset=utf-8'],
  '/page.js': ['page.js', 'text/javascript; charset=utf-8'],
  '/icon.svg': ['icon.svg', 'image/svg+xml'],
  '/page.css': ['page.css', 'text/css; charset=utf-8'],
}
const SAFE = {
  'content-security-policy': "default-src 'self'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'cache-control': 'no-store',
}

async function answer(request, response) {
  const { method, url } = request
  const verb = Object.hasOwn(VERBS, url.slice(1)) ? VERBS[url.slice(1)] : undefined
  // A page of another site may not press the buttons, nor read this one under a name of its own.
  if (!/^(localhost|127\.0\.0\.1)(:\d+)?$/.test(request.headers.host)) return end(response, 421)
  if (method === 'GET' && Object.hasOwn(FILES, url)) {
    const [file, type] = FILES[url]
    response.writeHead(200, { ...SAFE, 'content-type': type })
    return response.end(readFileSync(new URL(file, import.meta.url)))
  }
  if (method === 'GET' && url === '/events') return sendEvents(response)
  if (method !== 'POST' || verb === undefined) return end(response, 404)
  if (request.headers['sec-fetch-site'] !== 'same-origin') return end(response, 403)
  // False when the sequence has left the state that the page showed, such as a pause of one that has just ended.
  end(response, (await sequence[verb]({ actor: 'page' })) ? 204 : 409)
}

/** The latest state whenever this page is ready for one: a slow page skips some, and costs no memory. */
async function sendEvents(response) {
  response.writeHead(200, { ...SAFE, 'content-type': 'text/event-stream' })
  const states = text[Symbol.asyncIterator]()
  response.on('close', () => states.return()) // the page was closed: this ends the loop
  for await (const state of states) {
    if (state === undefined) continue
    if (!response.write(`data: ${state}\n\n`)) await Promise.race([once(response, 'drain'), once(response, 'close')])
  }
}

function end(response, status) {
  response.writeHead(status, SAFE).end()
}

const server = createServer((request, response) => {
  answer(request, response).catch((error) => response.destroy(error))
})
await once(server.listen(Number(given.port), '127.0.0.1'), 'listening')
await mill.start()
console.log(`http://127.0.0.1:${server.address().port}/`)

for (const name of ['SIGINT', 'SIGTERM'])
  process.once(name, async () => {
    server.close()
    server.closeAllConnections()
    await mill.close({ deadline: '2s' })
    process.exit(0)
  })

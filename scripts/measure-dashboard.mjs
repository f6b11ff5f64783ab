import { fork } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { build } from './build.mjs'
import { tell } from './run.mjs'

/**
 * `node scripts/measure-dashboard.mjs [--store postgres://…] [--jobs 1000000] [--only pages,streams,drain] [--seconds 20] [--rounds 5]`:
 * what the dashboard costs on a store with a million kept jobs. Three parts: the time of each page's data (limit 200 ms), 200 streams
 * and 300 pollers (part of a core, memory), and how fast jobs are worked off with 50 open streams compared with none (limit 0.95).
 * The store, its worker and the dashboard are one process, the readers another. Without --store it is a new file.
 */
const DATA_MAX_MS = 200
const DRAIN_MIN = 0.95
const TRIES = 5
const STREAMS = 200
const POLLERS = 300
const POLL_MS = 5_000
const STREAMS_PER_SESSION = 8
const STREAMS_PER_ADDRESS = 32
const DRAIN_STREAMS = 50
const DRAIN_JOBS = 10_000
const TOKEN = 'measured-measured-measured-measured'

const { values: given } = parseArgs({
  options: {
    store: { type: 'string' },
    jobs: { type: 'string', default: '1000000' },
    only: { type: 'string', default: 'pages,streams,drain' },
    seconds: { type: 'string', default: '20' },
    rounds: { type: 'string', default: '5' },
    serve: { type: 'boolean', default: false },
  },
})
const parts = given.only.split(',')

if (given.serve) await serve()
else process.exitCode = (await measure()) ? 0 : 1

/** The process that is measured. It answers commands of its parent. */
async function serve() {
  const { job, millrace } = await import('../examples/millrace.js')
  const { fill } = await import('../examples/demo/shop/fill.js')
  const nothing = job('nothing', { queue: 'drained', run: () => {} })
  const mill = await millrace({ store: given.store, jobs: [nothing], logger: false })
  const send = (answer) => process.send(answer)
  await fill(given.store, { count: Number(given.jobs), now: Date.now() })
  await mill.start()
  while ((await mill.stats.queues()).default === undefined) await sleep(100)
  const dashboard = await mill.dashboard({ port: 0, token: TOKEN })
  const examples = {}
  for await (const { id } of mill.find({ state: 'failed', limit: 1 })) examples.job = id
  examples.print = (await mill.stats.errorGroups({ days: 7 })).rows[0]?.fingerprint
  send({ port: dashboard.port, examples })

  const commands = {
    usage: () => ({ cpu: process.cpuUsage(), memory: process.memoryUsage().rss, at: performance.now() }),
    drain: async () => {
      await mill.queue('drained').pause()
      await mill.enqueueMany(nothing, Array(DRAIN_JOBS).fill(undefined), { group: `round-${Date.now()}` })
      const began = performance.now()
      await mill.queue('drained').resume()
      while ((await mill.count({ queue: 'drained', state: ['ready', 'running'] })).count > 0) await sleep(5)
      return { ms: performance.now() - began }
    },
    stop: async () => {
      await dashboard.close()
      await mill.close({ deadline: 0 })
      setImmediate(() => process.exit(0))
    },
  }
  const run = async (name) => send((await commands[name]()) ?? {})
  process.on('message', (name) => void run(name))
  process.on('disconnect', () => process.exit(0))
}

async function measure() {
  tell(await build())
  const folder = mkdtempSync(join(tmpdir(), 'millrace-measured-'))
  const store = given.store ?? join(folder, 'jobs.db')
  const args = ['--serve', '--store', store, '--jobs', given.jobs]
  const child = fork(fileURLToPath(import.meta.url), args, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  const gone = new Promise((resolve) => child.once('exit', resolve))
  try {
    console.log(
      `${Number(given.jobs).toLocaleString('en')} kept jobs are written to ${given.store ? 'PostgreSQL' : 'a file'} …`,
    )
    const { port, examples } = await answerOf(child)
    const ask = (name) => {
      const answer = answerOf(child)
      child.send(name)
      return answer
    }
    const verdicts = []
    if (parts.includes('pages')) verdicts.push(await measurePages(await signIn(port, '127.0.0.1'), examples))
    if (parts.includes('streams')) verdicts.push(await measureStreams(port, ask))
    if (parts.includes('drain')) verdicts.push(await measureDrain(port, ask))
    await ask('stop')
    await gone
    return verdicts.every(Boolean)
  } finally {
    child.kill('SIGKILL')
    rmSync(folder, { recursive: true, force: true })
  }
}

function answerOf(child) {
  return new Promise((resolve, reject) => {
    child.once('message', resolve)
    child.once('exit', (code) => reject(new Error(`the measured process ended with ${code}`)))
  })
}

/** A session from one of the addresses of this machine: the caps on streams are by session and by address. */
async function signIn(port, localAddress) {
  const call = (path, { method = 'POST', body, headers = {}, onData } = {}) =>
    new Promise((resolve, reject) => {
      const sent = request({
        host: '127.0.0.1',
        port,
        path: `/${path}`,
        method,
        localAddress,
        headers: {
          'x-millrace': '1',
          'sec-fetch-site': 'same-origin',
          ...(body && { 'content-type': 'application/json' }),
          ...headers,
        },
      })
      sent.on('error', reject)
      sent.on('response', (response) => {
        if (onData !== undefined && response.statusCode === 200) {
          response.on('data', onData).on('error', () => {}) // it is destroyed at the end
          return resolve({ status: 200, close: () => sent.destroy() })
        }
        const chunks = []
        response.on('data', (chunk) => chunks.push(chunk))
        response.on('end', () =>
          resolve({ status: response.statusCode, headers: response.headers, text: Buffer.concat(chunks).toString() }),
        )
      })
      sent.end(body && JSON.stringify(body))
    })
  const login = await call('api/login', { body: { token: TOKEN } })
  const cookie = login.headers['set-cookie']?.[0]?.split(';')[0]
  if (login.status !== 204 || cookie === undefined)
    throw new Error(`the sign-in was answered with ${login.status} ${login.text}`)
  const session = await call('api/session', { method: 'GET', headers: { cookie } })
  const headers = { cookie, 'x-millrace-csrf': JSON.parse(session.text).csrf }
  return (path, options = {}) => call(path, { ...options, headers })
}

async function measurePages(call, { job, print }) {
  const topics = [
    'health',
    'overview:1h',
    'overview:7d',
    'queues',
    'queue:1h:mail',
    'list:changed:',
    'list:newest:',
    'list:newest:state:failed',
    'list:newest:queue:mail state:done',
    'list:newest:job:charge label:billing',
    'workflows:newest:',
    `job:${job}`,
    'failures:deploy',
    'failures:7d',
    `failure:${print}`,
    'recurring',
    'groups',
    'sequences',
    'workers',
    'upcoming:24h',
    'audit:',
    'enqueue',
  ]
  const queries = [
    '',
    'state:failed',
    'queue:mail',
    'label:billing state:failed',
    'payload.country:NO',
    'payload.order:>9000',
    '"card declined"',
    'no-such-word',
    `${job}`,
    'job:charge since:1h',
  ]
  const calls = [
    ...topics.map((topic) => ({ name: `view ${topic}`, run: () => call('api/view', { body: { topic } }) })),
    ...queries.map((query) => ({
      name: `search ${query}`,
      run: () => call('api/search', { body: { query, sort: 'newest' } }),
    })),
  ]
  console.log(`\n${'page'.padEnd(48)}first ms  median ms`)
  let isRight = true
  for (const { name, run } of calls) {
    const times = []
    let status
    for (let i = 0; i < TRIES; i += 1) {
      const began = performance.now()
      status = (await run()).status
      times.push(performance.now() - began)
    }
    // A search that tests jobs one by one has 200 ms for that, and then says how far it came.
    const max = name.startsWith('search') ? 2 * DATA_MAX_MS : DATA_MAX_MS
    const [first, middle] = [times[0], median(times)]
    const note = status !== 200 ? `status ${status}` : middle > max ? `more than ${max} ms` : ''
    isRight &&= note === ''
    console.log(
      `${name.slice(0, 46).padEnd(48)}${first.toFixed(0).padStart(8)}${middle.toFixed(0).padStart(11)}  ${note}`,
    )
  }
  return isRight
}

const TABS = [
  ['health', 'overview:1h'],
  ['health', 'queues'],
  ['health', 'list:newest:state:failed'],
  ['health', 'workers'],
  ['health', 'failures:24h'],
]

async function openStreams(port, count) {
  const open = []
  let bytes = 0
  let call
  for (let i = 0; i < count; i += 1) {
    if (i % STREAMS_PER_SESSION === 0) call = await signIn(port, `127.0.0.${2 + Math.floor(i / STREAMS_PER_ADDRESS)}`)
    const stream = await call('api/stream', {
      body: { topics: TABS[i % TABS.length] },
      onData: (data) => (bytes += data.length),
    })
    if (stream.status === 200) open.push(stream)
  }
  return { open: open.length, bytes: () => bytes, close: () => open.forEach((each) => each.close()) }
}

async function measureStreams(port, ask) {
  const seconds = Number(given.seconds)
  const idle = await usage(ask, seconds / 2)
  const streams = await openStreams(port, STREAMS)
  const poll = await signIn(port, '127.0.0.1')
  let polls = 0
  let failed = 0
  let isOver = false
  const pollers = Array.from({ length: POLLERS }, async (_, i) => {
    await sleep((i / POLLERS) * POLL_MS)
    while (!isOver) {
      const answers = await Promise.all(TABS[i % TABS.length].map((topic) => poll('api/view', { body: { topic } })))
      polls += answers.length
      failed += answers.filter(({ status }) => status !== 200 && status !== 204).length
      await sleep(POLL_MS)
    }
  })
  await sleep(2_000)
  const bytes = streams.bytes()
  const busy = await usage(ask, seconds)
  isOver = true
  const perTab = (streams.bytes() - bytes) / seconds / STREAMS
  streams.close()
  await Promise.all(pollers)
  const megabytes = (busy.memory - idle.memory) / 2 ** 20
  console.log(
    `\n${streams.open} of ${STREAMS} streams and ${POLLERS} pollers (${polls} polls, ${failed} refused): ${(busy.cores * 100).toFixed(1)} % of a core (idle ${(idle.cores * 100).toFixed(1)} %), ${megabytes.toFixed(0)} MB more memory, ${(perTab / 1024).toFixed(1)} KB/s a stream`,
  )
  return streams.open === STREAMS && failed === 0
}

async function usage(ask, seconds) {
  const before = await ask('usage')
  await sleep(seconds * 1_000)
  const after = await ask('usage')
  const used = after.cpu.user + after.cpu.system - before.cpu.user - before.cpu.system
  return { cores: used / 1_000 / (after.at - before.at), memory: after.memory }
}

async function measureDrain(port, ask) {
  const rounds = Number(given.rounds)
  const ratios = []
  await ask('drain')
  for (let round = 1; round <= rounds; round += 1) {
    const alone = (await ask('drain')).ms
    const streams = await openStreams(port, DRAIN_STREAMS)
    const beside = (await ask('drain')).ms
    streams.close()
    ratios.push(alone / beside)
    console.log(
      `drain ${round} of ${rounds}: ${perSecond(alone)}/s alone, ${perSecond(beside)}/s with ${streams.open} streams`,
    )
    if (round < rounds) await sleep(12_000) // the limit on sign-ins is by the minute
  }
  console.log(`with ${DRAIN_STREAMS} streams ${median(ratios).toFixed(3)} of the speed without (limit ${DRAIN_MIN})`)
  return median(ratios) >= DRAIN_MIN
}

const perSecond = (ms) => Math.round((DRAIN_JOBS / ms) * 1_000).toLocaleString('en')

function median(numbers) {
  return numbers.toSorted((one, other) => one - other)[Math.floor(numbers.length / 2)]
}

import { fork } from 'node:child_process'
import { availableParallelism } from 'node:os'
import { parseArgs } from 'node:util'
import { compileCampaign } from './compile-campaign.mjs'

/**
 * `npm run model -- [--programs 2000] [--minutes 10] [--store sqlite|postgres] [--seed N]`: random programs of public verbs
 * against the reference model (test/model/), on one store and on all cores. A difference prints the shortest program that shows
 * it, and the command that finds it again.
 */
const usage = 'usage: npm run model -- [--programs N] [--minutes N] [--store sqlite|postgres] [--seed N]'

/** The programs are tests, so they are compiled beside the package and never published with it. */
const at = (file) => new URL(`../.cache/campaign/test/model/${file}`, import.meta.url).href

const SERVER = new URL('../.cache/campaign/test/postgres/campaign-server.js', import.meta.url).href

/** So many programs have one seed: lanes take them one seed after the other, so that a seed is the same on any machine. */
const CHUNK = 50

/** Programs that one process runs at once. On PostgreSQL it works on one while the server works on the others. */
const LANES = { sqlite: 1, postgres: 3 }

/** When the progress was last shown. */
let told = Date.now()

if (process.send === undefined) await main()
else process.once('message', (share) => void runShare(share))

async function main() {
  const { values } = parseArgs({
    options: {
      programs: { type: 'string', default: '2000' },
      minutes: { type: 'string', default: '10' },
      store: { type: 'string', default: 'sqlite' },
      seed: { type: 'string', default: String(Date.now() % 1_000_000_000) },
    },
  })
  const [programs, minutes, seed] = [values.programs, values.minutes, values.seed].map(Number)
  const isRight = Number.isInteger(programs) && programs >= 1 && minutes > 0 && Number.isInteger(seed)
  if (!isRight || !Object.hasOwn(LANES, values.store)) {
    console.error(usage)
    process.exitCode = 2
    return
  }
  if (!(await compileCampaign())) return
  const server = values.store === 'postgres' ? await (await import(SERVER)).startServer() : undefined
  try {
    await campaign({ programs, minutes, seed, store: values.store, url: server?.url })
  } finally {
    await server?.stop()
  }
}

async function campaign({ programs, minutes, seed, store, url }) {
  const began = Date.now()
  const sum = { programs: 0, steps: 0, differences: 0 }
  const chunks = chunksOf(programs, seed)
  const share = () =>
    new Promise((resolve, reject) => {
      // Most of what a step makes is garbage at once: a larger nursery collects it for less.
      const child = fork(new URL(import.meta.url), { execArgv: ['--max-semi-space-size=64'] })
      child.send({ lanes: LANES[store], url, until: began + minutes * 60_000 })
      child.on('message', ({ wants, agreed, difference }) => {
        if (wants) child.send({ chunk: chunks.next().value ?? null })
        sum.programs += agreed?.programs ?? 0
        sum.steps += agreed?.steps ?? 0
        if (difference !== undefined) {
          sum.differences += 1
          console.log(`\n${difference.message}\n  repeat: ${commandOf(store, difference.chunk)}`)
        }
        progress(sum, programs, began)
      })
      child.on('exit', (code) =>
        code === 0 ? resolve() : reject(new Error(`a share of the programs ended with ${code}`)),
      )
    })
  await Promise.all(Array.from({ length: Math.min(availableParallelism(), 8) }, share))
  const ms = Date.now() - began
  console.log(
    `\n${sum.programs} of ${programs} programs, ${sum.steps} steps in ${(ms / 1000).toFixed(0)} s on ${store}: ` +
      `${(ms / sum.steps).toFixed(2)} ms a step, seed ${seed}, ${sum.differences} differences`,
  )
  console.log(`${sum.programs} passed, ${sum.differences} failed`)
  process.exitCode = sum.differences > 0 || sum.programs === 0 ? 1 : 0
}

function* chunksOf(programs, seed) {
  for (let from = 0; from < programs; from += CHUNK)
    yield { seed: seed + from / CHUNK, programs: Math.min(CHUNK, programs - from) }
}

function commandOf(store, { seed, programs }) {
  return `npm run model -- --store ${store} --seed ${seed} --programs ${programs}`
}

/** One process of the campaign: each of its lanes asks for the next chunk until there is none, or the time is over. */
async function runShare({ lanes, url, until }) {
  const { openLane, runChunk } = await import(at('campaign.js'))
  const waiting = []
  process.on('message', ({ chunk }) => waiting.shift()(chunk))
  const next = () =>
    new Promise((resolve) => {
      waiting.push(resolve)
      process.send({ wants: true })
    })
  const isOver = () => Date.now() > until
  const lane = async () => {
    const database = await openLane(url)
    for (let chunk; !isOver() && (chunk = await next()) !== null;) {
      const agreed = (steps) => process.send({ agreed: { programs: 1, steps } })
      const message = await runChunk(database, { ...chunk, isOver, agreed })
      if (message !== undefined) process.send({ difference: { message, chunk } })
    }
    await database.close()
  }
  await Promise.all(Array.from({ length: lanes }, lane))
  process.disconnect()
}

/** A line that a terminal overwrites; a log gets one every half minute. */
function progress({ programs, differences }, all, began) {
  const isDue = process.stdout.isTTY || Date.now() - told > 30_000
  if (!isDue) return
  told = Date.now()
  const width = 30
  const full = Math.round((programs / all) * width)
  const left = programs === 0 ? '?' : Math.round((((told - began) / programs) * (all - programs)) / 1000)
  const bar = `${'█'.repeat(full)}${'░'.repeat(width - full)} ${programs}/${all} programs, ${differences} differences, ${left} s left`
  process.stdout.write(process.stdout.isTTY ? `\r${bar} ` : `${bar}\n`)
}

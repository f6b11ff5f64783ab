import { fork } from 'node:child_process'
import { availableParallelism } from 'node:os'
import { parseArgs } from 'node:util'
import { compileCampaign } from './compile-campaign.mjs'

/**
 * `npm run seams -- [--store sqlite|postgres] [--scenario name] [--group store|statements|callbacks] [--minutes M]`: runs each
 * scenario of test/seams once for every call that it makes and every way in which that call can fail. With --at and --fault it
 * repeats one of them, with its trace. The order is drawn from --seed, so that a short run is a sample.
 */
const usage =
  'usage: npm run seams -- [--store sqlite|postgres] [--scenario NAME] [--group store|statements|callbacks] [--minutes N] [--seed N] [--at CALL --fault FAULT]'

/** The scenarios are tests, so they are compiled beside the package and never published with it. */
const at = (file) => new URL(`../.cache/campaign/test/seams/${file}`, import.meta.url).href
const POSTGRES = new URL('../.cache/campaign/test/campaign/postgres.js', import.meta.url).href
const SERVER = new URL('../.cache/campaign/test/postgres/campaign-server.js', import.meta.url).href
const SQLITE = new URL('../.cache/campaign/src/testing/simulation/sqlite-engine.js', import.meta.url).href

if (process.send === undefined) await main()
else process.once('message', (share) => void runShare(share))

async function main() {
  const { values } = parseArgs({
    options: {
      store: { type: 'string', default: 'sqlite' },
      scenario: { type: 'string' },
      group: { type: 'string' },
      minutes: { type: 'string', default: '600' },
      seed: { type: 'string', default: '1' },
      at: { type: 'string' },
      fault: { type: 'string' },
    },
  })
  const isPostgres = values.store === 'postgres'
  const groups = values.group === undefined ? groupsOf(isPostgres) : [values.group]
  const isWrong =
    !['sqlite', 'postgres'].includes(values.store) ||
    !groupsOf(true).includes(groups[0]) ||
    !(Number(values.minutes) > 0) ||
    !Number.isInteger(Number(values.seed)) ||
    (groups[0] === 'statements' && !isPostgres) ||
    (values.at === undefined) !== (values.fault === undefined) ||
    (values.at !== undefined && (values.scenario === undefined || groups.length > 1))
  if (isWrong) {
    console.error(usage)
    process.exitCode = 2
    return
  }
  if (!(await compileCampaign())) return
  const { SCENARIO_NAMES } = await import(at('seams.js'))
  const names = values.scenario === undefined ? SCENARIO_NAMES : [values.scenario]
  const until = Date.now() + values.minutes * 60_000
  const share = { store: values.store, names, groups, until, seed: Number(values.seed) }
  if (values.at !== undefined) await repeat(share, values)
  else await campaign(share)
}

/** Statements are seams of PostgreSQL only. */
function groupsOf(isPostgres) {
  return isPostgres ? ['store', 'statements', 'callbacks'] : ['store', 'callbacks']
}

async function repeat({ store, names, groups }, { at: text, fault }) {
  const [{ runCase }, { seamOf }] = [await import(at('seams.js')), await import(at('seam.js'))]
  const opened = await open(store)
  const strike = { seam: seamOf(text), fault }
  const { error, trace, isStruck } = await runCase({ scenario: names[0], group: groups[0], strike }, opened.openEngine)
  console.log(trace.join('\n'))
  console.log(isStruck ? `${text}: ${fault}` : `the call ${text} was not made`)
  console.log(error === undefined ? 'every promise was kept' : (error.stack ?? error))
  process.exitCode = error === undefined ? 0 : 1
  await opened.close()
}

async function campaign(share) {
  const began = Date.now()
  const shares = Math.min(availableParallelism(), 8)
  const sum = { done: 0, all: 0, missed: 0, failed: 0 }
  const one = (index) =>
    new Promise((resolve, reject) => {
      // Most of what a case makes is garbage at once: a larger nursery collects it for less.
      const child = fork(new URL(import.meta.url), { execArgv: ['--max-semi-space-size=64'] })
      child.send({ ...share, index, shares })
      child.on('message', (told) => {
        for (const key of Object.keys(sum)) sum[key] += told[key] ?? 0
        if (told.failure !== undefined) console.log(`\n${told.failure}`)
        progress(sum, began)
      })
      child.on('exit', (code) =>
        code === 0 ? resolve() : reject(new Error(`a share of the calls ended with ${code}`)),
      )
    })
  await Promise.all(Array.from({ length: shares }, (_, index) => one(index)))
  const seconds = ((Date.now() - began) / 1000).toFixed(0)
  console.log(
    `\n${sum.done} of ${sum.all} failing calls in ${seconds} s on ${share.store}; ${sum.missed} were not made again`,
  )
  console.log(`${sum.done - sum.failed} passed, ${sum.failed} failed`)
  process.exitCode = sum.failed > 0 ? 1 : 0
}

async function runShare({ store, names, groups, until, seed, index, shares }) {
  const { listCases, runCase, shuffled, describeFailure } = await import(at('seams.js'))
  const { openEngine, close } = await open(store)
  const cases = shuffled(await listCases(names, groups, openEngine), seed).filter((_, i) => i % shares === index)
  process.send({ all: cases.length })
  let told = { done: 0, missed: 0, failed: 0 }
  for (const each of cases) {
    if (Date.now() > until) break
    const { error, isStruck } = await runCase(each, openEngine)
    told.done += 1
    if (!isStruck) told.missed += 1
    if (error !== undefined) Object.assign(told, { failed: 1, failure: describeFailure(each, store, error) })
    if (told.done < 20 && error === undefined) continue
    process.send(told)
    told = { done: 0, missed: 0, failed: 0 }
  }
  process.send(told)
  await close()
  process.disconnect()
}

/** Each share has a server of its own: the census is read again when a transaction has ended anywhere on the server. */
async function open(store) {
  if (store === 'sqlite') {
    const engine = await (await import(SQLITE)).SqliteEngine.open()
    return { openEngine: async () => engine.empty(), close: async () => undefined }
  }
  const server = await (await import(SERVER)).startServer()
  const { engine, close } = await (await import(POSTGRES)).openPostgres(server.url)
  return { openEngine: () => engine.empty(), close: () => close().finally(() => server.stop()) }
}

function progress({ done, all }, began) {
  if (!process.stdout.isTTY || all === 0) return
  const width = 30
  const full = Math.round((done / all) * width)
  const left = done === 0 ? '?' : Math.round((((Date.now() - began) / done) * (all - done)) / 1000)
  process.stdout.write(`\r${'█'.repeat(full)}${'░'.repeat(width - full)} ${done}/${all} failing calls, ${left} s left `)
}

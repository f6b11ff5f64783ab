import { fork } from 'node:child_process'
import { availableParallelism } from 'node:os'
import { parseArgs } from 'node:util'
import { compileCampaign } from './compile-campaign.mjs'

/**
 * `npm run simulate -- --seeds 10000 [--from 1]` runs a campaign over many seeds on all cores; `--seed N` replays one seed,
 * with its trace. A failure prints the seed, its configuration, and the command that replays it. `--workload` names what the fleet
 * works on (test/campaign/workloads.ts). With `--store postgres` it works on a real server: then the order of its answers is not
 * part of the seed.
 */
const usage =
  'usage: npm run simulate -- [--workload jobs|sequences|workflows|limits] [--store sqlite|postgres] [--minutes N] [--seeds N] [--from N] | --seed N'

/** The campaign is a test, so it is compiled beside the package and never published with it. */
const CAMPAIGN = new URL('../.cache/campaign/test/campaign/campaign.js', import.meta.url).href
const WORKLOADS = new URL('../.cache/campaign/test/campaign/workloads.js', import.meta.url).href
const POSTGRES = new URL('../.cache/campaign/test/campaign/postgres.js', import.meta.url).href
const SERVER = new URL('../.cache/campaign/test/postgres/campaign-server.js', import.meta.url).href

if (process.send === undefined) await main()
else process.once('message', (share) => void runShare(share))

async function main() {
  const { values } = parseArgs({
    options: {
      seeds: { type: 'string' },
      from: { type: 'string' },
      seed: { type: 'string' },
      store: { type: 'string', default: 'sqlite' },
      workload: { type: 'string', default: 'jobs' },
      minutes: { type: 'string', default: '600' },
    },
  })
  const [seeds, from, seed] = [values.seeds ?? '500', values.from ?? '1', values.seed].map((v) =>
    v === undefined ? undefined : Number(v),
  )
  const isWrong = [seeds, from, seed].some((v) => v !== undefined && (!Number.isInteger(v) || v < 0))
  const minutes = Number(values.minutes)
  if (isWrong || !['sqlite', 'postgres'].includes(values.store) || !(minutes > 0)) return refuse(usage)
  if (!(await compileCampaign())) return
  const { WORKLOADS: known } = await import(WORKLOADS)
  if (!Object.hasOwn(known, values.workload))
    return refuse(`no workload ${values.workload}: there are ${Object.keys(known).join(', ')}`)
  const server = values.store === 'postgres' ? await (await import(SERVER)).startServer() : undefined
  try {
    const work = { workload: values.workload, url: server?.url, until: Date.now() + minutes * 60_000 }
    if (seed !== undefined) await tellOne(seed, work)
    else await campaign(from, seeds, work)
  } finally {
    await server?.stop()
  }
}

function refuse(why) {
  console.error(why)
  process.exitCode = 2
}

async function tellOne(seed, work) {
  const { shrink } = await import(CAMPAIGN)
  const { run, close } = await runnerOf(work)
  const report = await run(seed)
  const ok = report.error === undefined
  await close()
  console.log(report.trace.join('\n'))
  console.log(`seed ${seed} ${ok ? 'holds every promise' : `breaks one: ${report.error?.message ?? report.error}`}`)
  console.log(`configuration: ${JSON.stringify(report.config)}`)
  if (!ok && work.url === undefined && work.workload === 'jobs')
    console.log(`still broken with: ${JSON.stringify(await shrink(seed))}`)
  process.exitCode = ok ? 0 : 1
}

async function campaign(from, seeds, work) {
  const replay = `npm run simulate -- --workload ${work.workload}${work.url === undefined ? '' : ' --store postgres'} --seed`
  const began = Date.now()
  const shares = Math.min(availableParallelism(), 8)
  const coverage = {}
  const failures = []
  let done = 0
  const share = (index) =>
    new Promise((resolve, reject) => {
      const child = fork(new URL(import.meta.url))
      const size = Math.ceil(seeds / shares)
      child.send({ from: from + index * size, to: Math.min(from + seeds, from + (index + 1) * size), work })
      child.on('message', (told) => {
        done += told.seeds
        for (const [what, times] of Object.entries(told.coverage)) coverage[what] = (coverage[what] ?? 0) + times
        for (const failure of told.failures) {
          failures.push(failure)
          console.log(
            `\nseed ${failure.seed}: ${failure.message}\n  configuration: ${failure.config}\n  replay: ${replay} ${failure.seed}`,
          )
        }
        progress(done, seeds, began)
      })
      child.on('exit', (code) =>
        code === 0 ? resolve() : reject(new Error(`a share of the seeds ended with ${code}`)),
      )
    })
  await Promise.all(Array.from({ length: shares }, (_, index) => share(index)))
  if (done < seeds) console.log(`\nthe time is over after ${done} of ${seeds} seeds`)
  await conclude({ coverage, failures, seeds: done, began, workload: work.workload })
}

async function conclude({ coverage, failures, seeds, began, workload }) {
  const { WORKLOADS: known } = await import(WORKLOADS)
  console.log('\nwhat was covered:')
  for (const [what, times] of Object.entries(coverage).sort(([a], [b]) => a.localeCompare(b)))
    console.log(`  ${what.padEnd(32)} ${times.toLocaleString('en')}`)
  const missing = known[workload].mustCover.filter((what) => (coverage[what] ?? 0) === 0)
  if (missing.length > 0) console.log(`never met, so the campaign proves less than it says: ${missing.join(', ')}`)
  console.log(`${seeds} seeds in ${((Date.now() - began) / 1000).toFixed(0)} s, ${failures.length} broke a promise`)
  console.log(`${seeds - failures.length} passed, ${failures.length + missing.length} failed`)
  process.exitCode = failures.length + missing.length > 0 ? 1 : 0
}

async function runShare({ from, to, work }) {
  const { addCoverage } = await import(CAMPAIGN)
  const { run, close } = await runnerOf(work)
  let told = { seeds: 0, coverage: {}, failures: [] }
  for (let seed = from; seed < to; seed += 1) {
    const report = await run(seed)
    const isOver = Date.now() > work.until
    told.seeds += 1
    addCoverage(told.coverage, report.coverage)
    if (report.error !== undefined)
      told.failures.push({
        seed,
        message: String(report.error?.message ?? report.error),
        config: JSON.stringify(report.config),
      })
    if (told.seeds < 20 && seed + 1 < to && !isOver) continue
    process.send(told)
    told = { seeds: 0, coverage: {}, failures: [] }
    if (isOver) break
  }
  await close()
  process.disconnect()
}

/** Runs seeds on SQLite in memory, or in a database of its own on the server at this URL. */
async function runnerOf({ workload, url }) {
  const { WORKLOADS: known } = await import(WORKLOADS)
  const { run } = known[workload]
  if (url === undefined) return { run: (seed) => run(seed), close: async () => undefined }
  const { openPostgres } = await import(POSTGRES)
  const { engine, close } = await openPostgres(url)
  return { run: (seed) => run(seed, () => engine.empty()), close }
}

function progress(done, all, began) {
  if (!process.stdout.isTTY) return
  const width = 30
  const full = Math.round((done / all) * width)
  const left = done === 0 ? '?' : (((Date.now() - began) / done) * (all - done)) / 1000
  process.stdout.write(
    `\r${'█'.repeat(full)}${'░'.repeat(width - full)} ${done}/${all} seeds, ${Math.round(left)} s left `,
  )
}

import { fork } from 'node:child_process'
import { availableParallelism } from 'node:os'
import { parseArgs } from 'node:util'
import { compileCampaign } from './compile-campaign.mjs'

/**
 * `npm run simulate -- --seeds 10000 [--from 1]` runs a campaign over many seeds on all cores; `--seed N` replays one seed,
 * with its trace. A failure prints the seed, its configuration, and the command that replays it. With `--store postgres` the
 * fleet works on a real server: then the order of its answers is not part of the seed.
 */
const usage = 'usage: npm run simulate -- [--store sqlite|postgres] [--seeds N] [--from N] | --seed N'

/** The campaign is a test, so it is compiled beside the package and never published with it. */
const CAMPAIGN = new URL('../.cache/campaign/test/campaign/campaign.js', import.meta.url).href
const POSTGRES = new URL('../.cache/campaign/test/campaign/postgres.js', import.meta.url).href

if (process.send === undefined) await main()
else process.once('message', ({ from, to, url }) => void runShare(from, to, url))

async function main() {
  const { values } = parseArgs({
    options: {
      seeds: { type: 'string' },
      from: { type: 'string' },
      seed: { type: 'string' },
      store: { type: 'string', default: 'sqlite' },
    },
  })
  const [seeds, from, seed] = [values.seeds ?? '500', values.from ?? '1', values.seed].map((v) =>
    v === undefined ? undefined : Number(v),
  )
  const isWrong = [seeds, from, seed].some((v) => v !== undefined && (!Number.isInteger(v) || v < 0))
  if (isWrong || !['sqlite', 'postgres'].includes(values.store)) {
    console.error(usage)
    process.exitCode = 2
    return
  }
  if (!(await compileCampaign())) return
  const server = values.store === 'postgres' ? await (await import(POSTGRES)).startServer() : undefined
  try {
    if (seed !== undefined) await tellOne(seed, server?.url)
    else await campaign(from, seeds, server?.url)
  } finally {
    await server?.stop()
  }
}

async function tellOne(seed, url) {
  const { shrink } = await import(CAMPAIGN)
  const { run, close } = await runnerOn(url)
  const report = await run(seed)
  await close()
  console.log(report.trace.join('\n'))
  console.log(
    `seed ${seed} ${report.ok ? 'holds every promise' : `breaks one: ${report.error?.message ?? report.error}`}`,
  )
  console.log(`configuration: ${JSON.stringify(report.config)}`)
  if (!report.ok && url === undefined) console.log(`still broken with: ${JSON.stringify(await shrink(seed))}`)
  process.exitCode = report.ok ? 0 : 1
}

async function campaign(from, seeds, url) {
  const began = Date.now()
  const shares = Math.min(availableParallelism(), 8)
  const coverage = {}
  const failures = []
  let done = 0
  const share = (index) =>
    new Promise((resolve, reject) => {
      const child = fork(new URL(import.meta.url))
      const size = Math.ceil(seeds / shares)
      child.send({ from: from + index * size, to: Math.min(from + seeds, from + (index + 1) * size), url })
      child.on('message', (told) => {
        done += told.seeds
        for (const [what, times] of Object.entries(told.coverage)) coverage[what] = (coverage[what] ?? 0) + times
        for (const failure of told.failures) {
          failures.push(failure)
          console.log(
            `\nseed ${failure.seed}: ${failure.message}\n  configuration: ${failure.config}\n  replay: npm run simulate -- ${url === undefined ? '' : '--store postgres '}--seed ${failure.seed}`,
          )
        }
        progress(done, seeds, began)
      })
      child.on('exit', (code) =>
        code === 0 ? resolve() : reject(new Error(`a share of the seeds ended with ${code}`)),
      )
    })
  await Promise.all(Array.from({ length: shares }, (_, index) => share(index)))
  await conclude(coverage, failures, done, began)
}

async function conclude(coverage, failures, seeds, began) {
  const { uncovered } = await import(CAMPAIGN)
  console.log('\nwhat was covered:')
  for (const [what, times] of Object.entries(coverage).sort(([a], [b]) => a.localeCompare(b)))
    console.log(`  ${what.padEnd(32)} ${times.toLocaleString('en')}`)
  const missing = uncovered(coverage)
  if (missing.length > 0) console.log(`never met, so the campaign proves less than it says: ${missing.join(', ')}`)
  console.log(`${seeds} seeds in ${((Date.now() - began) / 1000).toFixed(0)} s, ${failures.length} broke a promise`)
  console.log(`${seeds - failures.length} passed, ${failures.length + missing.length} failed`)
  process.exitCode = failures.length + missing.length > 0 ? 1 : 0
}

async function runShare(from, to, url) {
  const { addCoverage } = await import(CAMPAIGN)
  const { run, close } = await runnerOn(url)
  let told = { seeds: 0, coverage: {}, failures: [] }
  for (let seed = from; seed < to; seed += 1) {
    const report = await run(seed)
    told.seeds += 1
    addCoverage(told.coverage, report.coverage)
    if (!report.ok)
      told.failures.push({
        seed,
        message: String(report.error?.message ?? report.error),
        config: JSON.stringify(report.config),
      })
    if (told.seeds < 20 && seed + 1 < to) continue
    process.send(told)
    told = { seeds: 0, coverage: {}, failures: [] }
  }
  await close()
  process.disconnect()
}

/** Runs seeds on SQLite in memory, or in a database of its own on the server at this URL. */
async function runnerOn(url) {
  const { runSeed } = await import(CAMPAIGN)
  if (url === undefined) return { run: (seed) => runSeed(seed), close: async () => undefined }
  const { openPostgres, onPostgres } = await import(POSTGRES)
  const { engine, close } = await openPostgres(url)
  return { run: (seed) => runSeed(seed, {}, onPostgres(seed), () => engine.empty()), close }
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

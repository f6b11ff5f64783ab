import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { runCampaign } from './mutate/campaign.mjs'
import { entriesOf } from './mutate/entries.mjs'
import { roomOf, scoreTable, survivorLine } from './mutate/report.mjs'
import { withServer } from './mutate/server.mjs'
import { root } from './run.mjs'
import { Progress } from './torture/progress.mjs'

/**
 * `npm run mutate -- [--rooms job,codec] [--sample 200] [--seed N] [--minutes M] [--file part-of-a-path] [--tests part-of-a-path]`:
 * changes the sources in small ways, one at a time, and runs the tests that reach the change. A change that no test notices is a
 * survivor: it shows a missing test, or code that is not needed. Mutants that change nothing are listed in test/mutate/equivalent.json,
 * each with the reason.
 */
const PURE = ['job', 'schedule', 'codec', 'client', 'observe']
const OTHERS = ['worker', 'upkeep', 'store/sqlite', 'store/postgres', 'store/verbs']
const ROOMS = [...PURE, ...OTHERS]
/** How much CPU time the tests of one mutant may take together, as measured without it. A survivor costs all of it. */
const BUDGET_MS = { pure: 4_000, others: 8_000 }
const CACHE = join(root, '.cache', 'mutate')
const EQUIVALENT = join(root, 'test', 'mutate', 'equivalent.json')

const { values } = parseArgs({
  options: {
    rooms: { type: 'string', default: PURE.join(',') },
    file: { type: 'string', default: '' },
    tests: { type: 'string', default: '' },
    sample: { type: 'string' },
    seed: { type: 'string', default: '1' },
    minutes: { type: 'string', default: '60' },
  },
})
const rooms = values.rooms.split(',')
const [sample, seed, minutes] = [values.sample, values.seed, values.minutes].map((value) =>
  value === undefined ? undefined : Number(value),
)
const isRight =
  rooms.every((room) => ROOMS.includes(room)) && (sample === undefined || sample >= 1) && seed >= 0 && minutes > 0
if (isRight) await main()
else {
  console.error(
    `usage: npm run mutate -- [--rooms ${ROOMS.join(',')}] [--file PART] [--tests PART,PART] [--sample N] [--seed N] [--minutes N]`,
  )
  process.exitCode = 2
}

async function main() {
  const onPostgres = rooms.includes('store/postgres')
  const parts = values.tests.split(',')
  const entries = entriesOf(root, onPostgres).filter(({ key }) => parts.some((part) => key.includes(part)))
  const campaign = (env) => run(entries, env)
  const outcome = onPostgres ? await withServer(root, CACHE, campaign) : await campaign({})
  conclude(outcome)
}

function run(entries, env) {
  const measuring = new Progress('measured', entries.length)
  let trying
  return runCampaign({
    root,
    cache: CACHE,
    env,
    entries,
    equivalent: existsSync(EQUIVALENT) ? JSON.parse(readFileSync(EQUIVALENT, 'utf8')) : [],
    sample,
    seed,
    deadline: Date.now() + minutes * 60_000,
    budgetMs: rooms.some((room) => OTHERS.includes(room)) ? BUDGET_MS.others : BUDGET_MS.pure,
    isMutated: (path) =>
      roomOf(path, ROOMS) !== undefined && !/\.test(-d)?\.ts$/.test(path) && !/\/migrations\//.test(path),
    isChosen: (path) => roomOf(path, rooms) !== undefined && path.includes(values.file),
    onMeasured: (key) => measuring.step(key),
    onProblems: (problems) => {
      measuring.end()
      for (const problem of problems) console.log(`a test that cannot be used: ${problem.slice(0, 300)}`)
    },
    onTried: (result, done, all) => {
      trying ??= new Progress('mutants', all)
      if (result.status !== 'killed') console.log(survivorLine(result))
      trying.step(result.status)
    },
  })
}

function conclude({ results, chosen, equivalents, stale }) {
  mkdirSync(CACHE, { recursive: true })
  writeFileSync(join(CACHE, 'report.json'), JSON.stringify(results, null, 1))
  console.log(`\n${scoreTable(results, rooms)}`)
  console.log(`${equivalents} more are listed as equivalent; seed ${seed}`)
  for (const { file, source, original, mutated } of stale)
    console.log(`listed as equivalent, but not found: ${file}: ${source}: ${original} → ${mutated}`)
  if (results.length < chosen.length)
    console.log(`${chosen.length - results.length} were not tried in ${minutes} minutes`)
  process.exitCode = stale.length > 0 ? 1 : 0
}

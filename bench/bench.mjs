import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { cpus, loadavg } from 'node:os'
import { dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { formatGate, isMet } from './gates.mjs'
import { SCENARIOS } from './options.mjs'
import { formatTable, showNumber } from './table.mjs'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
/** Where the scenarios of a kind are. */
const FOLDERS = { sqlite: 'sqlite', crowd: 'sqlite', postgres: 'postgres', reactive: 'reactive' }
const RESULTS = fileURLToPath(new URL('./results/', import.meta.url))

/**
 * Runs the scenarios one after another, prints each as it ends, and writes all figures as JSON. 0 when everything could be
 * measured, whatever the figures are; 1 when something broke, such as a job that was lost.
 * @param {{ kind: string, options: { [name: string]: any } }} asked
 */
export async function runBench({ kind, options }) {
  const { describeStore, openPlace } = await import(`./${FOLDERS[kind]}/store.mjs`)
  const place = await openPlace(ROOT, options)
  // An interrupted run leaves no gigabytes behind.
  for (const [signal, code] of [
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ])
    process.once(signal, () => {
      place.abandon()
      process.exit(code)
    })
  try {
    const machine = describe(place, await describeStore(place))
    console.log(formatMachine(machine))
    if (options.quick) console.log('quick: so few measurements show that the benchmark works, and nothing about speed')
    const names = options.only ?? SCENARIOS[kind].filter((name) => name !== 'before' || options.before !== undefined)
    const scenarios = []
    for (const name of SCENARIOS[kind].filter((each) => names.includes(each))) {
      const { scenario } = await import(`./${FOLDERS[kind]}/${name}.mjs`)
      const begun = loadavg()[0]
      scenarios.push({ ...(await scenario(benchOf(place, options))), load: [begun, loadavg()[0]] })
      print(scenarios.at(-1))
      await place.dropTemplates()
    }
    return conclude({ kind, options, machine, scenarios })
  } finally {
    await place.clear()
  }
}

function benchOf(place, options) {
  const tell = (line) => console.log(`  ${line}`)
  const profiles = ['--cpu-prof', `--cpu-prof-dir=${join(RESULTS, 'profiles')}`]
  return {
    options,
    place,
    tell,
    nodeArgs: options.profile ? profiles : [],
    plan: (scenario) => ({ scenario, rounds: options.rounds, tell }),
  }
}

function describe(place, store) {
  return {
    at: new Date().toISOString(),
    commit: commit(),
    node: process.version,
    store,
    cpus: cpus().length,
    cpu: cpus()[0]?.model ?? 'unknown',
    load: loadavg()[0],
    flushMs: place.flushMs(),
  }
}

/** Below this a flush is not real: the disk is memory, or ignores flushes. */
const REAL_FLUSH_MS = 0.02

function formatMachine({ commit: at, node, store, cpus: count, cpu, load, flushMs }) {
  const machine = `commit ${at}, node ${node}, ${store}, ${count} × ${cpu}, load ${load.toFixed(1)}`
  if (flushMs === undefined) return machine
  const isNone = flushMs.p50 < REAL_FLUSH_MS
  const warning = isNone ? '; a flush costs nothing here, so figures that include a flush prove nothing' : ''
  return `${machine}\na flush takes ${showNumber(flushMs.p50)} ms (p99 ${showNumber(flushMs.p99)})${warning}`
}

function print({ title, heads, rows, notes = [], gates, load }) {
  const shown = load.map((each) => each.toFixed(1)).join(' to ')
  console.log(`\n${title}\nload ${shown} on ${cpus().length} cores`)
  if (rows.length > 0) console.log(formatTable(heads, rows))
  for (const note of notes) console.log(note)
  for (const gate of gates) console.log(formatGate(gate))
  console.log('')
}

function conclude({ kind, options, machine, scenarios }) {
  const gates = scenarios.flatMap((scenario) => scenario.gates)
  const broken = scenarios.flatMap(({ rounds }) => rounds.broken)
  const file = options.json === undefined ? nameOf(kind, machine) : resolve(options.json)
  mkdirSync(dirname(file), { recursive: true })
  const told = scenarios.map(({ name, title, load, rounds, ...rest }) => ({
    name,
    title,
    load,
    figures: rounds,
    gates: rest.gates.map((gate) => ({ ...gate, met: isMet(gate) ?? null })),
  }))
  writeFileSync(file, `${JSON.stringify({ kind, options, machine, scenarios: told, broken }, undefined, 1)}\n`)
  const met = gates.filter(isMet).length
  console.log(`${met} of ${gates.length} gates met; all figures in ${relative(process.cwd(), file)}`)
  for (const gate of gates.filter((each) => isMet(each) !== true)) console.log(formatGate(gate))
  for (const problem of broken) console.log(`BROKEN   ${problem}`)
  return broken.length > 0 ? 1 : 0
}

function nameOf(kind, { at }) {
  return join(RESULTS, `${kind}-${at.slice(0, 19).replaceAll(':', '')}.json`)
}

/** The commit, and whether the source has changes. */
function commit() {
  const git = (...args) =>
    execFileSync('git', args, { cwd: ROOT, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim()
  try {
    return git('rev-parse', '--short', 'HEAD') + (git('status', '--porcelain', 'src') === '' ? '' : ' with changes')
  } catch {
    return 'unknown' // Not a checkout: the figures are still useful.
  }
}

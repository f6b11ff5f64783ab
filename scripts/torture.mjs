import { execFileSync } from 'node:child_process'
import { readOptions, usage } from './torture/options.mjs'
import { root } from './run.mjs'

/**
 * `npm run torture -- <kind>`: real processes on a real store, with injected faults. Exit 0 only when every promise held, 1 when
 * one was broken, 2 when the run proved nothing or its options were wrong. See docs/guides/torture.md.
 */
const RUNS = {
  kill: () => import('./torture/kill.mjs'),
  server: () => import('./torture/server.mjs'),
  power: () => import('./torture/power.mjs'),
  io: () => import('./torture/io.mjs'),
  disk: () => import('./torture/disk.mjs'),
  ticks: () => import('./torture/ticks.mjs'),
  poison: () => import('./torture/poison.mjs'),
  poisons: () => import('./torture/poisons.mjs'),
  workflows: () => import('./torture/workflows.mjs'),
  exits: () => import('./torture/exits.mjs'),
}

process.exitCode = await main(process.argv.slice(2))

async function main(args) {
  let asked
  try {
    asked = readOptions(args)
  } catch (error) {
    console.error(`torture: ${error.message}\n${usage()}`)
    return 2
  }
  const { kind, options } = asked
  // A URL may contain a password.
  const shown = Object.entries(options)
    .filter(([name]) => name !== 'url')
    .map(([name, value]) => `--${name} ${value}`)
  console.log(`torture ${kind} ${shown.join(' ')} (commit ${commit()}, node ${process.version})`)
  const began = performance.now()
  const { torture } = await RUNS[kind]()
  const verdict = await torture(options)
  console.log(`seed ${options.seed}, ${((performance.now() - began) / 1000).toFixed(1)} s`)
  verdict.print()
  return verdict.exitCode
}

/** The commit, and whether the source has changes. */
function commit() {
  const git = (...args) =>
    execFileSync('git', args, { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim()
  try {
    return git('rev-parse', '--short', 'HEAD') + (git('status', '--porcelain', 'src') === '' ? '' : ' with changes')
  } catch {
    return 'unknown' // Not a checkout: the figures are still useful.
  }
}

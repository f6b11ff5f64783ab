import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { readOptions, usage } from '../bench/options.mjs'
import { build } from './build.mjs'
import { root, run } from './run.mjs'

/**
 * `npm run bench -- <kind>`: measures its speed beside other libraries. Exit 0 when everything could be measured, whatever the figures
 * are; 1 when something broke; 2 for wrong options. See bench/README.md.
 */
process.exitCode = await main(process.argv.slice(2))

async function main(args) {
  let asked
  try {
    asked = readOptions(args)
  } catch (error) {
    console.error(`bench: ${error.message}\n${usage()}`)
    return 2
  }
  // `crowd` has no contestants, so it needs no registry.
  const steps = asked.kind === 'crowd' ? [build] : [build, install]
  for (const step of steps) {
    const { name, code, output } = await step()
    if (code === 0) continue
    console.error(`bench: ${name} failed\n${output}`)
    return 1
  }
  // Only after the install: the contestants are packages of bench/.
  const { runBench } = await import('../bench/bench.mjs')
  return runBench(asked)
}

/** Installs the contestants, when they are missing or differ from the lock. */
async function install() {
  const folder = join(root, 'bench')
  const [lock, there] = [join(folder, 'package-lock.json'), join(folder, 'node_modules', '.package-lock.json')]
  if (existsSync(there) && statSync(there).mtimeMs >= statSync(lock).mtimeMs) return { name: '', code: 0, output: '' }
  console.log('installing the contestants …')
  const args = ['ci', '--no-audit', '--no-fund', '--loglevel=error']
  return { name: 'npm ci in bench/', ...(await run('npm', args, { cwd: folder })) }
}

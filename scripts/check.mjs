import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { writeExamples } from './doc-examples.mjs'
import { root, runNode, tell, tool } from './run.mjs'

const OURS = ['src', 'test', 'scripts', 'vitest.config.ts']
/** They are separate packages, whose types exist only after their install: formatted, not linted. */
const EXAMPLES = ['examples', 'bench'].filter((folder) => existsSync(join(root, folder)))

/** Static checks. Each counts as one in the totals of `npm test`. */
export const checks = [
  // One program: most of the time of the second would be the sources again.
  { name: 'types of src and test', run: () => tsc('-p', 'tsconfig.test.json') },
  { name: 'types of the dashboard’s pages', run: () => tsc('--noEmit', '-p', 'src/dashboard/web') },
  { name: 'lint', run: () => runNode([tool('oxlint'), '--type-aware', '--deny-warnings', ...OURS]) },
  { name: 'format', run: () => runNode([tool('oxfmt'), '--check', ...OURS, ...EXAMPLES]) },
  { name: 'doc examples', run: compileExamples },
]

async function compileExamples() {
  const folder = join(root, '.cache', 'doc-examples')
  const count = writeExamples(folder)
  if (count === 0) return { code: 0, output: '', seconds: 0 }
  return tsc('-p', folder)
}

function tsc(...args) {
  return runNode([tool('typescript', 'tsc'), ...args])
}

/** Each keeps one core busy. */
const AT_ONCE = 2

/** Runs every check, prints each as it ends, and returns them with their exit codes. */
export async function check() {
  const waiting = [...checks]
  const results = []
  const runSome = async () => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      const result = { name: next.name, ...(await next.run()) }
      tell(result)
      results.push(result)
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, runSome))
  return results
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const results = await check()
  process.exitCode = results.some(({ code }) => code !== 0) ? 1 : 0
}

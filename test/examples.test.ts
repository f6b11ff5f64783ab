import { existsSync, readFileSync, readdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { build } from '../scripts/build.mjs'
import { root, runNode } from '../scripts/run.mjs'
import { onPostgres, passingStore, UNFLUSHED } from './support/fresh-store.js'

/** Every example is run as a real process, and must print exactly the lines that it declares. */
const folder = join(root, 'examples')
const NOT_PROGRAMS = ['millrace.js', 'millrace-testing.js', 'millrace-reactive.js', 'fresh-file.js']
const ON_A_FILE = ['transactions.js']
const EXAMPLE_MAX_MS = 30_000

const programs = readdirSync(folder)
  .filter((file) => file.endsWith('.js') && !NOT_PROGRAMS.includes(file))
  .sort()
const reactive = readdirSync(join(folder, 'reactive')).filter((file) => file.endsWith('.js'))
/** On PostgreSQL all run but those that need a handle on a file. */
const runnable = programs.filter((program) => !onPostgres || !ON_A_FILE.includes(program))

beforeAll(async () => {
  const built = await build()
  if (built.code !== 0) throw new Error(`the package does not build:\n${built.output}`)
})

test('there are examples, and the list of them names each', () => {
  const list = readFileSync(join(folder, 'README.md'), 'utf8')
  expect(programs.length).toBeGreaterThan(5)
  const others = reactive.map((program) => `reactive/${program}`)
  expect([...programs, ...others].filter((program) => !list.includes(`\`${program}\``))).toEqual([])
})

test.skipIf(onPostgres).each(reactive)('reactive/%s runs from a clean clone', async (program) => {
  const { code, output } = await runNode([join(folder, 'reactive', program)], {
    cwd: folder,
    timeoutMs: EXAMPLE_MAX_MS,
  })
  expect([code, output]).toEqual([0, expect.stringMatching(/\S/)])
})

test.each(runnable)('%s prints the lines that it declares, and nothing else', async (program) => {
  const path = join(folder, program)
  const expected = promised(readFileSync(path, 'utf8'))
  expect(expected.length, 'lines that begin with "// prints: "').toBeGreaterThan(0)
  const env = { ...QUIET, EXAMPLES_STORE: onPostgres ? passingStore() : undefined }
  const { code, output } = await runNode([path], { cwd: folder, env, timeoutMs: EXAMPLE_MAX_MS })
  const lines = output.trimEnd().split('\n')
  expect(lines.filter((line) => !line.endsWith(UNFLUSHED))).toEqual(expected)
  expect(code).toBe(0)
})

test.skipIf(onPostgres)('every link in the documents names an existing file', () => {
  const documents = [
    'README.md',
    'ARCHITECTURE.md',
    'CONTRIBUTING.md',
    'CHANGELOG.md',
    'examples/README.md',
    ...guides(),
  ]
  const broken = documents.flatMap((document) => {
    const links = readFileSync(join(root, document), 'utf8').matchAll(/\]\(([^)\s#]+)/g)
    const files = [...links].map(([, link = '']) => link).filter((link) => !/^\w+:/.test(link))
    return files
      .filter((file) => !existsSync(join(root, dirname(document), file)))
      .map((file) => `${document}: ${file}`)
  })
  expect(broken).toEqual([])
})

function guides(): string[] {
  const found = readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' })
  return found.filter((file) => file.endsWith('.md')).map((file) => `docs/${file}`)
}

/** A clean environment: no colours, no warnings of Node, no variables of this test run. */
const QUIET = {
  NO_COLOR: '1',
  FORCE_COLOR: undefined,
  NODE_ENV: undefined,
  NODE_OPTIONS: undefined,
  NODE_NO_WARNINGS: '1',
  MILLRACE_STORE: undefined,
}

function promised(text: string): string[] {
  return [...text.matchAll(/^\/\/ prints: ?(.*)$/gm)].map((match) => match[1] ?? '')
}

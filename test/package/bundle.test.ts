import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { build } from '../../scripts/build.mjs'
import { root, run, runNode } from '../../scripts/run.mjs'

/** Millrace in a bundle: it finds its SQLite library beside the bundle, or says what to do. */

const BUNDLERS = join(root, '.cache', 'bundlers')
const folder = mkdtempSync(join(tmpdir(), 'millrace-bundle-'))
const EXTERNAL = ['@photostructure/sqlite', 'pg']
const PROGRAM = `
import { job, millrace } from './node_modules/millrace/dist/index.js'
const greet = job('greet', async (p) => 'hello ' + p.name)
async function main() {
  const mill = await millrace({ store: 'jobs.db', jobs: [greet], logger: false })
  const handle = await mill.enqueue(greet, { name: 'Ada' })
  await mill.start()
  console.log(await handle.result({ timeout: '10s' }))
  await mill.close()
}
main().catch((error) => {
  console.log(error.code, error.message)
  process.exitCode = 1
})
`

beforeAll(async () => {
  expect(await build()).toMatchObject({ code: 0 })
  if (!existsSync(join(BUNDLERS, 'node_modules', 'webpack'))) await fetchBundlers()
  await bundleAll()
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const BUNDLES: readonly (readonly [what: string, file: string, bundle: (out: string) => ReturnType<typeof run>])[] = [
  ['esbuild to CommonJS', 'esbuild.cjs', (out) => esbuild('cjs', out)],
  ['esbuild to an ES module', 'esbuild.mjs', (out) => esbuild('esm', out)],
  ['webpack to CommonJS', 'webpack.cjs', webpack],
]

/** From packages that are then removed, as on a machine that only gets the bundle: webpack writes the original path of a file into it. */
async function bundleAll(): Promise<void> {
  const modules = join(folder, 'node_modules')
  mkdirSync(join(modules, 'millrace'), { recursive: true })
  cpSync(join(root, 'dist'), join(modules, 'millrace', 'dist'), { recursive: true })
  cpSync(join(root, 'package.json'), join(modules, 'millrace', 'package.json'))
  cpSync(join(root, 'node_modules', 'croner'), join(modules, 'croner'), { recursive: true })
  writeFileSync(join(folder, 'app.mjs'), PROGRAM)
  for (const [what, file, bundle] of BUNDLES) {
    const { code, output } = await bundle(file)
    expect(code, `${what}:\n${output}`).toBe(0)
  }
  rmSync(modules, { recursive: true })
}

/** They are installed once and kept, as compilers are. */
async function fetchBundlers(): Promise<void> {
  mkdirSync(BUNDLERS, { recursive: true })
  writeFileSync(join(BUNDLERS, 'package.json'), '{ "private": true }\n')
  const args = [
    'install',
    '--no-audit',
    '--no-fund',
    '--loglevel=error',
    'esbuild@0.25.0',
    'webpack@5.112.2',
    'webpack-cli@7.3.1',
  ]
  const { code, output } = await run('npm', args, { cwd: BUNDLERS, timeoutMs: 120_000 })
  if (code !== 0) throw new Error(`the bundlers could not be fetched:\n${output}`)
}

describe.each(BUNDLES)('%s', (_, file) => {
  test('runs with what is installed beside it', async () => {
    const app = placeIn('beside', file)
    mkdirSync(join(app, 'node_modules', '@photostructure'), { recursive: true })
    const library = join(root, 'node_modules', '@photostructure', 'sqlite')
    symlinkSync(library, join(app, 'node_modules', '@photostructure', 'sqlite'), 'junction')
    expect(await runNode([file], { cwd: app })).toMatchObject({ output: 'hello Ada\n', code: 0 })
  })

  test.skipIf(isBuiltin('node:sqlite'))('says what to do where it is not', async () => {
    const { output, code } = await runNode([file], { cwd: placeIn('away', file) })
    expect(output).toMatch(
      /^E_NO_SQLITE no SQLite library can be loaded from here: .* runs in a bundle that cannot reach/,
    )
    expect(output).toContain('mark @photostructure/sqlite as external, and where the bundle runs run `npm install')
    expect(code).toBe(1)
  })
})

/** A separate folder with the bundle in it, and no node_modules in its parent folders. */
function placeIn(place: string, file: string): string {
  const app = mkdtempSync(join(folder, `${place}-`))
  cpSync(join(folder, file), join(app, file))
  return app
}

function esbuild(format: string, out: string): ReturnType<typeof run> {
  const external = EXTERNAL.map((name) => `--external:${name}`)
  const args = [
    join(folder, 'app.mjs'),
    '--bundle',
    '--platform=node',
    `--format=${format}`,
    `--outfile=${join(folder, out)}`,
  ]
  // Its installation may replace the script by the program itself.
  return run(join(BUNDLERS, 'node_modules', '.bin', 'esbuild'), [...args, ...external])
}

function webpack(out: string): ReturnType<typeof run> {
  const config = join(folder, 'webpack.config.cjs')
  const externals = Object.fromEntries(EXTERNAL.map((name) => [name, `commonjs ${name}`]))
  const output = { path: folder, filename: out }
  const settings = { mode: 'none', target: 'node20', entry: join(folder, 'app.mjs'), output, externals }
  writeFileSync(config, `module.exports = ${JSON.stringify(settings)}\n`)
  return runNode([join(BUNDLERS, 'node_modules', 'webpack-cli', 'bin', 'cli.js'), '--config', config], {
    cwd: BUNDLERS,
  })
}

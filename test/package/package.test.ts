import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { isBuiltin } from 'node:module'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { pack } from '../../scripts/pack.mjs'
import { root, run, runNode } from '../../scripts/run.mjs'

/** The package as a new user gets it: packed, installed into an empty folder, and used from there. */
/** The dashboard is 160 kB of it: its server, and the built pages. */
const TARBALL_BYTES_MAX = 1_500_000
const INSTALL_SECONDS_MAX = 60
const PROGRAM_MAX_MS = 60_000
const NPM_MAX_MS = 120_000
/** Some Node versions run TypeScript without a build. */
const README_FILES =
  'typescript' in process.features && process.features.typescript ? ['jobs.mjs', 'jobs.mts'] : ['jobs.mjs']
const TYPES = ['@types/node@20.19.43', '@types/better-sqlite3@9.6.0']
const TYPED = ['typed.ts', 'better-sqlite3.ts']
/** What `npm install millrace` installs, its dependencies included. */
const INSTALLED_BYTES_MAX = 5_750_000

const folder = mkdtempSync(join(tmpdir(), 'millrace-package-'))
let packed: Awaited<ReturnType<typeof pack>>
let install: Awaited<ReturnType<typeof run>>

beforeAll(async () => {
  packed = await pack(join(folder, 'packed'), cleanClone())
  writeFileSync(join(folder, 'package.json'), '{ "name": "stranger", "private": true, "type": "module" }\n')
  install = await npmInstall(folder, ...readmeInstall(packed.tarball))
})

const readme = readFileSync(join(root, 'README.md'), 'utf8')

/** What the README's first block installs on this Node, with the tarball in place of the name. */
function readmeInstall(tarball: string): string[] {
  const [withOwnSqlite = '', without = ''] = firstBlock(readme, 'sh').trim().split('\n')
  const line = hasOwnSqlite ? withOwnSqlite : without
  const packages = /^npm install ([^#]+)/.exec(line)?.[1]?.trim().split(/\s+/) ?? []
  expect(packages).toContain('millrace')
  return packages.map((name) => (name === 'millrace' ? tarball : name))
}
const hasOwnSqlite = isBuiltin('node:sqlite')

/** The README's first program, in TypeScript and as the README says to write it in JavaScript. */
function readmeProgram(): { program: string; untyped: string } {
  const program = firstBlock(readme, 'ts')
  expect(program).toMatch(/from 'millrace'/)
  const untyped = program.replace(': { to: string }', '')
  expect(untyped).not.toBe(program)
  return { program, untyped }
}

/** The tree as in a fresh clone with its dependencies installed: nothing is built. */
function cleanClone(): string {
  const clone = join(folder, 'clone')
  const made = new Set(['node_modules', 'dist', '.cache', '.git', 'coverage'])
  cpSync(root, clone, { recursive: true, filter: (file) => !made.has(basename(file)) })
  symlinkSync(join(root, 'node_modules'), join(clone, 'node_modules'), 'junction')
  return clone
}

afterAll(() => rmSync(folder, { recursive: true, force: true }))

describe('the tarball', () => {
  test.each([
    'dist/index.js',
    'dist/index.d.ts',
    'dist/cli/main.js',
    'package.json',
    'README.md',
    'LICENSE',
    'CHANGELOG.md',
  ])('has %s', (file) => {
    expect(packed.files).toContain(file)
  })

  test('has only the built package, its documents and the usual four files', () => {
    const allowed = /^(dist|docs|skills)\/|^(package\.json|README\.md|LICENSE|CHANGELOG\.md|llms(-full)?\.txt)$/
    expect(packed.files.filter((file) => !allowed.test(file))).toEqual([])
    expect(packed.files.filter((file) => /\.test(-d)?\./.test(file))).toEqual([])
  })

  test('has no secret and no leftover file', () => {
    const unwanted = /(^|\/)(\.|node_modules\/)|\.(db|db-\w+|tgz|pem|key|log|tsbuildinfo)$/
    expect(packed.files.filter((file) => unwanted.test(file))).toEqual([])
  })

  test('has every SQL file of the sources beside its code', () => {
    const has = new Set(packed.files)
    const sql = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' }).filter((file) =>
      file.endsWith('.sql'),
    )
    expect(sql.length).toBeGreaterThan(0)
    expect(sql.filter((file) => !has.has(`dist/${file}`))).toEqual([])
  })

  test('has no map and no reference to one, since it has no sources', () => {
    const maps = packed.files.filter((file) => file.endsWith('.map'))
    const installed = join(folder, 'node_modules', 'millrace')
    const code = packed.files.filter((file) => /\.(js|d\.ts)$/.test(file))
    const references = code.filter((file) =>
      readFileSync(join(installed, file), 'utf8').includes('//# sourceMappingURL='),
    )
    expect([...maps, ...references]).toEqual([])
  })

  test('is no larger than 1.5 MB', () => {
    expect(packed.size).toBeLessThanOrEqual(TARBALL_BYTES_MAX)
  })
})

describe('npm install millrace, and nothing else', () => {
  // Not inside the other folder, whose packages would be found too.
  const alone = mkdtempSync(join(tmpdir(), 'millrace-alone-'))
  afterAll(() => rmSync(alone, { recursive: true, force: true }))
  let output: string

  beforeAll(async () => {
    writeFileSync(join(alone, 'package.json'), '{ "name": "stranger", "private": true }\n')
    const args = ['install', '--no-audit', '--no-fund', packed.tarball]
    output = (await run('npm', args, { cwd: alone, timeoutMs: NPM_MAX_MS })).output
    writeFileSync(join(alone, 'readme.mjs'), readmeProgram().untyped)
  })

  test('installs three packages, less than 5.75 MB, and no install script to approve', () => {
    const files = readdirSync(join(alone, 'node_modules'), { recursive: true, encoding: 'utf8' })
    const bytes = files.reduce((sum, file) => sum + statSync(join(alone, 'node_modules', file)).size, 0)
    expect(output).toContain('added 3 packages')
    expect(output).not.toContain('install-scripts')
    expect(bytes).toBeLessThan(INSTALLED_BYTES_MAX)
  })

  test.runIf(hasOwnSqlite)("runs the README's first program with the SQLite of Node", async () => {
    const { code, output: said } = await asUserProject('readme.mjs', alone)
    expect(code, said).toBe(0)
  })

  test.skipIf(hasOwnSqlite)('says on a Node without SQLite which package to install', async () => {
    const { code, errors } = await asUserProject('readme.mjs', alone)
    expect(errors).toContain("code: 'E_NO_SQLITE'")
    expect(errors).toContain('@photostructure/sqlite is not installed; run `npm install @photostructure/sqlite@1`')
    expect(errors).not.toContain('bundle')
    expect(code).toBe(1)
  })
})

test('it installs into an empty folder, without scripts, in less than a minute', () => {
  console.log(`npm install of the tarball took ${install.seconds.toFixed(1)} s`)
  expect(install).toMatchObject({ code: 0 })
  expect(install.seconds).toBeLessThan(INSTALL_SECONDS_MAX)
})

describe('a program in that folder', () => {
  test.each(['imported.mjs', 'required.cjs'])(
    'runs a job to its result and exits without output on stderr: %s',
    async (program) => {
      copyFileSync(fixture(program), join(folder, program))
      const { code, output, errors } = await asUserProject(program)
      expect(withoutNodesOwn(errors)).toBe('')
      expect(output).toContain('RESULT {"sent":"a@b.c"}')
      expect(code).toBe(0)
    },
  )

  test.each(README_FILES)("the README's first program prints what the README says: %s", async (file) => {
    const { program, untyped } = readmeProgram()
    writeFileSync(join(folder, file), file.endsWith('.mjs') ? untyped : program)
    rmSync(join(folder, 'jobs.db'), { force: true })
    const { code, output } = await asUserProject(file)
    expect(output).toContain('sent to ada@example.com on attempt 2')
    expect(code, output).toBe(0)
  })
})

test('the command is installed as millrace, and migrates a file', async () => {
  const command = join(folder, 'node_modules', '.bin', 'millrace')
  const { code, output } = await run(command, ['migrate', '--store', 'typed.db'], {
    cwd: folder,
    timeoutMs: PROGRAM_MAX_MS,
  })
  expect(output).toContain('typed.db: the tables went from version 0 to')
  expect(code).toBe(0)
})

/** The oldest and the newest; what is between them compiles the same declarations in test/types.test.ts. */
describe.each(['5.5', '7.0.2'])('TypeScript %s', (version) => {
  let tsc: string

  beforeAll(async () => {
    tsc = await installTypeScript(version)
    if (!existsSync(join(folder, 'node_modules', '@types', 'node'))) await npmInstall(folder, ...TYPES)
    for (const file of TYPED) copyFileSync(fixture(file), join(folder, file))
  })

  test.each([
    { module: 'nodenext', moduleResolution: 'nodenext' },
    { module: 'esnext', moduleResolution: 'bundler' },
  ])('accepts our types with $moduleResolution resolution, and checks ours as strictly', async (resolution) => {
    const config = `tsconfig.${version}.${resolution.moduleResolution}.json`
    writeFileSync(join(folder, config), JSON.stringify({ compilerOptions: { ...STRICT, ...resolution }, files: TYPED }))
    const { code, output } = await runNode([tsc, '-p', config], { cwd: folder, timeoutMs: NPM_MAX_MS })
    expect(output).toBe('')
    expect(code).toBe(0)
  })
})

const STRICT = {
  strict: true,
  exactOptionalPropertyTypes: true,
  noUncheckedIndexedAccess: true,
  skipLibCheck: false,
  noEmit: true,
  target: 'es2022',
  lib: ['es2023'],
  types: ['node'],
}

/** Runs a program of the folder without the environment variables of vitest and this repository. */
function asUserProject(program: string, cwd = folder): ReturnType<typeof run> {
  const ours = Object.keys(process.env).filter((name) =>
    /^(VITEST|MILLRACE|NODE_|NO_COLOR|FORCE_COLOR|TEST$|DEV$|PROD$)/.test(name),
  )
  const env = Object.fromEntries(ours.map((name) => [name, undefined]))
  return runNode([program], { cwd, env, timeoutMs: PROGRAM_MAX_MS })
}

function fixture(name: string): string {
  return join(root, 'test', 'package', 'fixtures', name)
}

function npmInstall(where: string, ...what: readonly string[]): ReturnType<typeof run> {
  const args = ['install', '--no-audit', '--no-fund', '--ignore-scripts', '--loglevel=error', ...what]
  return run('npm', args, { cwd: where, timeoutMs: NPM_MAX_MS })
}

/** A compiler is installed once and kept: it does not change, and its installation is slow. */
async function installTypeScript(version: string): Promise<string> {
  const where = join(root, '.cache', `typescript-${version}`)
  const tsc = join(where, 'node_modules', 'typescript', 'bin', 'tsc')
  if (existsSync(tsc)) return tsc
  mkdirSync(where, { recursive: true })
  writeFileSync(join(where, 'package.json'), '{ "private": true }\n')
  const { code, output } = await npmInstall(where, `typescript@${version}`)
  if (code !== 0 || !existsSync(tsc)) throw new Error(`typescript@${version} could not be fetched:\n${output}`)
  return tsc
}

function firstBlock(markdown: string, language: string): string {
  return new RegExp(`^\`\`\`${language}[^\\n]*\\n([\\s\\S]*?)^\`\`\``, 'm').exec(markdown)?.[1] ?? ''
}

/** Node 22 warns that its own SQLite is experimental, whatever code loads it; Millrace does not suppress that line. */
function withoutNodesOwn(errors: string): string {
  if (!process.version.startsWith('v22.')) return errors
  return errors.replace(/^\(node:\d+\) ExperimentalWarning: SQLite .*\n\(Use `node --trace-warnings.*\n/m, '')
}

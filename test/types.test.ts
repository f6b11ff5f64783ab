import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { build } from '../scripts/build.mjs'
import { root, runNode, tool } from '../scripts/run.mjs'

/** The published types, compiled by each supported TypeScript: what it infers, and what it reports for a mistake. */

beforeAll(async () => {
  expect(await build()).toMatchObject({ code: 0 })
})

const TYPE_TESTS = ['src', 'src/reactive'].flatMap((folder) =>
  readdirSync(join(root, folder))
    .filter((file) => file.endsWith('.test-d.ts'))
    .map((file) => join(folder, file)),
)
const OPTIONS = {
  strict: true,
  exactOptionalPropertyTypes: true,
  noUncheckedIndexedAccess: true,
  noEmit: true,
  target: 'es2022',
  lib: ['es2023', 'esnext.disposable'],
  types: ['node'],
  module: 'nodenext',
  moduleResolution: 'nodenext',
  skipLibCheck: true,
}

const README_PROGRAM = /^```ts\n([\s\S]*?)^```/m.exec(readFileSync(join(root, 'README.md'), 'utf8'))?.[1] ?? ''
const README_TYPE_CHECKS = `
const text: string = await handle.result()
// @ts-expect-error the result is a text
const number: number = await handle.result()
// @ts-expect-error the payload has a recipient
await mill.enqueue(sendEmail, {})
export { number, text }
`

const IMPORTED = `import { job } from 'millrace'\nexport const greet = job('greet', async (p: { name: string }) => p.name)\n`
/** Older ones refuse to import an ES module in a CommonJS file under nodenext. */
const requiresModules = (version: string): boolean => version !== '5.5'

const COMPILERS: readonly (readonly [version: string, compiler: string])[] = [
  ['5.5', 'typescript-5.5'],
  ['5.9', 'typescript-5.9'],
  ['7', 'typescript'],
]

/** One program for each version and module setting: a compiler takes seconds to read the libraries, and little for a file. */
describe.each(COMPILERS)('TypeScript %s', (version, compiler) => {
  const MISTAKES = asUserProject('src/mistakes.test-d.ts')
  let found: Found
  beforeAll(async () => {
    const agreeing = TYPE_TESTS.map((file) => [fileNameFor(file), asUserProject(file)])
    found = await compile(version, compiler, OPTIONS, {
      ...Object.fromEntries(agreeing),
      'mistakes.ts': MISTAKES.replaceAll('@ts-expect-error says', 'says'),
      'readme.mts': README_PROGRAM + README_TYPE_CHECKS,
      ...(requiresModules(version) ? { 'imported.cts': IMPORTED } : {}),
    })
  })

  test('complains of nothing but the files it was given', () => {
    expect(found.elsewhere).toEqual([])
  })

  test.each(TYPE_TESTS)('agrees with %s', (file) => {
    expect(found.of(fileNameFor(file))).toEqual([])
  })

  test('names the mistake', () => {
    const expected = expectationsOf(MISTAKES)
    expect(expected.length).toBeGreaterThan(30)
    const wrong = expected.flatMap((each) => problemsOf(each, found.of('mistakes.ts')))
    expect(wrong).toEqual([])
  })

  test("compiles and infers the README's first program", () => {
    expect(README_PROGRAM).toMatch(/from 'millrace'/)
    expect(found.of('readme.mts')).toEqual([])
  })

  if (requiresModules(version))
    test('imports the package in a CommonJS file', () => {
      expect(found.of('imported.cts')).toEqual([])
    })
})

describe('a CommonJS file', () => {
  // The oldest and the newest: what is between them agrees with both.
  const OLDEST_AND_NEWEST = COMPILERS.filter(([version]) => version !== '5.9')
  const inGuide = /^```ts\n(import type \{ Mill \}[\s\S]*?)^```/m

  test.each(OLDEST_AND_NEWEST)(
    'compiles on TypeScript %s under node16 as the guide says',
    async (version, compiler) => {
      const guide = inGuide.exec(readFileSync(join(root, 'docs', 'guides', 'getting-started.md'), 'utf8'))?.[1] ?? ''
      expect(guide).toMatch(/'millrace'/)
      const node16 = { ...OPTIONS, module: 'node16', moduleResolution: 'node16' }
      const found = await compile(version, compiler, node16, { 'guide.cts': guide, 'imported.cts': IMPORTED })
      expect(found.elsewhere).toEqual([])
      expect(found.of('guide.cts')).toEqual([])
      const refused = found.of('imported.cts').map(({ text }) => text)
      expect(refused.join()).toContain('CommonJS module')
    },
  )

  test('imports the package under node20 on TypeScript 7', async () => {
    const options = { ...OPTIONS, module: 'node20', moduleResolution: 'node16' }
    const found = await compile('7', 'typescript', options, { 'imported.cts': IMPORTED })
    expect([...found.elsewhere, ...found.of('imported.cts')]).toEqual([])
  })
})

/** A type test as in a user's project: it imports the built declarations, by the package's name. */
function asUserProject(file: string): string {
  const reactive = file.includes('/reactive/')
  return readFileSync(join(root, file), 'utf8').replaceAll(/from '\.\/([\w-]+)\.js'/g, (_, name: string) => {
    const subpath = name === 'index' ? (reactive ? '/reactive' : '') : `/${name}`
    return `from 'millrace${subpath}'`
  })
}

interface Expectation {
  readonly line: number
  readonly says: string
  readonly not: string | undefined
}

function expectationsOf(source: string): Expectation[] {
  return source.split('\n').flatMap((text, index) => {
    const told = /@ts-expect-error says "(.*?)"(?: not "(.*?)")?$/.exec(text)
    // The error is on the line below, and lines are counted from 1.
    return told === null ? [] : [{ line: index + 2, says: told[1] as string, not: told[2] }]
  })
}

function problemsOf({ line, says, not }: Expectation, found: readonly Diagnostic[]): string[] {
  const said = found.filter((each) => each.line === line).map((each) => each.text)
  if (said.length === 0) return [`line ${line} was not refused; expected: ${says}`]
  const text = said.join('\n')
  const isWrong = !text.includes(says) || (not !== undefined && text.includes(not))
  return isWrong ? [`line ${line}: expected ${says}, and not ${not}, got:\n${text}`] : []
}

interface Diagnostic {
  readonly line: number
  readonly text: string
}

/** What a compiler reports for a program: by file, and everything else. */
interface Found {
  readonly of: (file: string) => readonly Diagnostic[]
  readonly elsewhere: readonly Diagnostic[]
}

const fileNameFor = (typeTest: string): string => `agrees-${typeTest.replace(/\W+/g, '-').replace(/-ts$/, '.ts')}`

/** Compiles files as one program. The folder is within the package, so that they can import the package by its own name. */
async function compile(
  version: string,
  compiler: string,
  compilerOptions: typeof OPTIONS,
  sources: Readonly<Record<string, string>>,
): Promise<Found> {
  const folder = join(root, '.cache', 'types', version, `${compilerOptions.module}-${Object.keys(sources).length}`)
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  for (const [file, source] of Object.entries(sources)) writeFileSync(join(folder, file), source)
  const files = Object.keys(sources)
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, files }))
  const { output } = await runNode([tool(compiler, 'tsc'), '-p', folder, '--pretty', 'false'])
  const said = diagnosticsIn(output)
  return {
    of: (file) => said.filter((each) => each.file === file),
    elsewhere: said.filter((each) => !files.includes(each.file)),
  }
}

/** `file.ts(3,7): error TS2345: …`, and what is indented below it. */
function diagnosticsIn(output: string): (Diagnostic & { readonly file: string })[] {
  const found: { file: string; line: number; text: string }[] = []
  for (const text of output.split('\n').filter((each) => each.trim() !== '')) {
    const start = /^(?:(.*?)\((\d+),\d+\): )?error TS\d+: (.*)$/.exec(text)
    const last = found.at(-1)
    if (start !== null)
      found.push({ file: basename(start[1] ?? ''), line: Number(start[2] ?? 0), text: start[3] as string })
    else if (last !== undefined) last.text += `\n${text}`
    else found.push({ file: '', line: 0, text })
  }
  return found
}

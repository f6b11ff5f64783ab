import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { build } from '../scripts/build.mjs'
import { root, runNode, tool } from '../scripts/run.mjs'

/** The published types, as each TypeScript that we promise reads them: what it infers, and what it says of a mistake. */

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

const COMPILERS: readonly (readonly [version: string, compiler: string])[] = [
  ['5.5', 'typescript-5.5'],
  ['5.9', 'typescript-5.9'],
  ['7', 'typescript'],
]

describe.each(COMPILERS)('TypeScript %s', (version, compiler) => {
  test.each(TYPE_TESTS)('agrees with %s', async (file) => {
    expect(await compile(version, compiler, 'agrees.ts', asStranger(file))).toEqual([])
  })

  test('names the mistake', async () => {
    const source = asStranger('src/mistakes.test-d.ts')
    const expected = expectationsOf(source)
    expect(expected.length).toBeGreaterThan(30)
    const found = await compile(version, compiler, 'mistakes.ts', source.replaceAll('@ts-expect-error says', 'says'))
    const wrong = expected.flatMap((each) => problemsOf(each, found))
    expect(wrong).toEqual([])
  })

  test("compiles and infers the README's first program", async () => {
    const program = /^```ts\n([\s\S]*?)^```/m.exec(readFileSync(join(root, 'README.md'), 'utf8'))?.[1] ?? ''
    const asked = `
const text: string = await handle.result()
// @ts-expect-error the result is a text
const number: number = await handle.result()
// @ts-expect-error the payload has a recipient
await mill.enqueue(sendEmail, {})
export { number, text }
`
    expect(program).toMatch(/from 'millrace'/)
    expect(await compile(version, compiler, 'readme.mts', program + asked)).toEqual([])
  })
})

describe('a CommonJS file', () => {
  const imported = `import { job } from 'millrace'\nexport const greet = job('greet', async (p: { name: string }) => p.name)\n`
  const inGuide = /^```ts\n(import type \{ Mill \}[\s\S]*?)^```/m

  test.each(COMPILERS)('compiles on TypeScript %s under node16 as the guide says', async (version, compiler) => {
    const guide = readFileSync(join(root, 'docs', 'guides', 'getting-started.md'), 'utf8')
    const node16 = { ...OPTIONS, module: 'node16', moduleResolution: 'node16' }
    expect(await compile(version, compiler, 'guide.cts', inGuide.exec(guide)?.[1] ?? '', node16)).toEqual([])
    const refused = await compile(version, compiler, 'node16.cts', imported, node16)
    expect(refused.map(({ text }) => text).join()).toContain('CommonJS module')
  })

  test.each([
    ['nodenext', '5.9', 'typescript-5.9'],
    ['nodenext', '7', 'typescript'],
    ['node20', '5.9', 'typescript-5.9'],
    ['node20', '7', 'typescript'],
  ])('imports the package under %s on TypeScript %s', async (module, version, compiler) => {
    const options = { ...OPTIONS, module, moduleResolution: module === 'node20' ? 'node16' : module }
    expect(await compile(version, compiler, `${module}.cts`, imported, options)).toEqual([])
  })
})

/** A type test as a user of the package would have it: it imports the built declarations, by the package's name. */
function asStranger(file: string): string {
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

/** What a compiler says of one file. The folder is within the package, so that the package can be imported by its own name. */
async function compile(
  version: string,
  compiler: string,
  file: string,
  source: string,
  compilerOptions: object = OPTIONS,
): Promise<Diagnostic[]> {
  const folder = join(root, '.cache', 'types', version, file)
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, file), source)
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: [file] }))
  const { output } = await runNode([tool(compiler, 'tsc'), '-p', folder, '--pretty', 'false'])
  return diagnosticsIn(output)
}

/** `file.ts(3,7): error TS2345: …`, and what is indented below it. */
function diagnosticsIn(output: string): Diagnostic[] {
  const found: { line: number; text: string }[] = []
  for (const text of output.split('\n').filter((each) => each.trim() !== '')) {
    const start = /^(?:.*?\((\d+),\d+\): )?error TS\d+: (.*)$/.exec(text)
    const last = found.at(-1)
    if (start !== null) found.push({ line: Number(start[1] ?? 0), text: start[2] as string })
    else if (last !== undefined) last.text += `\n${text}`
    else found.push({ line: 0, text })
  }
  return found
}

import { readFileSync, readdirSync } from 'node:fs'
import { join, relative, sep } from 'node:path'
import { scan, withoutComments } from './scan.js'
import type { Token } from './scan.js'

/** One source file, read and scanned. */
export interface Source {
  /** From the root of the repository, with `/`: `src/job/rules/decide.ts`. */
  readonly path: string
  readonly text: string
  readonly tokens: readonly Token[]
  /** The tokens without comments. */
  readonly code: readonly Token[]
}

/** What the rules read. A rule's own test plants one by hand. */
export interface House {
  /** The TypeScript under `src/`. */
  readonly sources: readonly Source[]
  /** The code under `test/`, `scripts/` and `bench/`: only the rule about language reads it. */
  readonly others: readonly Source[]
  /** The path of every file under `src/`, `test/` and `scripts/`. */
  readonly paths: readonly string[]
  /** The path of every file that documents may name: also of those under `bench/`, `docs/` and `examples/`. */
  readonly files: readonly string[]
  /** The README, the guides and the other documents. */
  readonly documents: readonly Document[]
  readonly manifest: Manifest
  /** The text of a file under `docs/`, or undefined when there is none. */
  readonly doc: (path: string) => string | undefined
}

export interface Document {
  readonly path: string
  readonly text: string
}

export interface Manifest {
  readonly scripts?: Readonly<Record<string, string>>
  readonly dependencies?: Readonly<Record<string, string>>
  readonly optionalDependencies?: Readonly<Record<string, string>>
  readonly peerDependencies?: Readonly<Record<string, string>>
  readonly peerDependenciesMeta?: Readonly<Record<string, { readonly optional?: boolean }>>
  readonly bundleDependencies?: unknown
  readonly bundledDependencies?: unknown
}

/** One breach of a rule, and where. */
export interface Breach {
  readonly file: string
  readonly line: number
  readonly what: string
}

export type Rule = (house: House) => Breach[]

const DOCUMENTS = ['README.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md']

export function readHouse(root: string): House {
  const paths = ['src', 'test', 'scripts'].flatMap((folder) => filesUnder(root, folder))
  const read = (path: string): Source => toSource(path, readFileSync(join(root, path), 'utf8'))
  const docs = filesUnder(root, 'docs')
  const bench = filesUnder(root, 'bench')
  const code = [...paths, ...bench].filter((path) => /\.[cm]?[jt]sx?$/.test(path))
  return {
    sources: code.filter((path) => path.startsWith('src/')).map(read),
    others: code.filter((path) => !path.startsWith('src/')).map(read),
    paths,
    files: [...paths, ...bench, ...docs, ...filesUnder(root, 'examples')],
    documents: [...DOCUMENTS, ...docs.filter((path) => path.endsWith('.md'))].map((path) => ({
      path,
      text: readFileSync(join(root, path), 'utf8'),
    })),
    manifest: JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as Manifest,
    doc: (path) => readIfThere(join(root, path)),
  }
}

/** A house of a few planted files, for the tests of the rules. */
export function plant(files: Readonly<Record<string, string>>, rest: Partial<House> = {}): House {
  const sources = Object.entries(files).map(([path, text]) => toSource(path, text))
  const paths = Object.keys(files)
  const nothing = { others: [], documents: [], manifest: {}, doc: () => undefined }
  return { sources, paths, files: paths, ...nothing, ...rest }
}

export function toSource(path: string, text: string): Source {
  const tokens = scan(text)
  return { path, text, tokens, code: withoutComments(tokens) }
}

/** Whether a file is a test, which is not shipped. */
export function isTest(path: string): boolean {
  return /\.test(-d)?\.[a-z]+$/.test(path)
}

export function shipped(house: House): Source[] {
  return house.sources.filter((source) => !isTest(source.path))
}

/** Our own files: the bench installs its contestants in a `node_modules` of its own. */
function filesUnder(root: string, folder: string): string[] {
  return readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(root, join(entry.parentPath, entry.name)).split(sep).join('/'))
    .filter((path) => !path.includes('/node_modules/'))
    .sort()
}

function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined // a missing document is a valid result; the rule reports what is missing
  }
}

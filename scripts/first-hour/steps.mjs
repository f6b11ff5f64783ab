import { readFileSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import { join } from 'node:path'
import { root } from '../run.mjs'

/**
 * The steps of the first hour. `packages` are installed beside Millrace; `files` are copied from programs/; `texts` are written;
 * each of `commands` must end with 0 and print what it `expects`. All programs run a job to its result.
 */
const readme = readFileSync(join(root, 'README.md'), 'utf8')
const greeted = /^hello ada$/m
const sent = /sent to ada@example\.com on attempt 2/
const node = (...args) => ({ args: ['node', ...args], expects: greeted })
const tool = (...args) => ({ args })

/** The arguments of npm in the README's first block, for this Node, with the tarball in place of the name. */
export function installLine(tarball) {
  const [withOwnSqlite, without] = block('sh').trim().split('\n')
  const line = isBuiltin('node:sqlite') ? withOwnSqlite : without
  const [, ...args] = line.replace(/#.*/, '').trim().split(/\s+/)
  return args.map((each) => (each === 'millrace' ? tarball : each))
}

function block(language) {
  return new RegExp(`^\`\`\`${language}[^\\n]*\\n([\\s\\S]*?)^\`\`\``, 'm').exec(readme)?.[1] ?? ''
}

const tsconfig = (module, moduleResolution) => ({
  compilerOptions: {
    target: 'es2022',
    module,
    moduleResolution,
    strict: true,
    types: ['node'],
    outDir: moduleResolution,
  },
  files: ['app.ts'],
})

const typescript = (version) => ({
  name: `TypeScript ${version}`,
  packages: [`typescript@${version}`, '@types/node@20'],
  files: ['app.ts'],
  texts: {
    'tsconfig.nodenext.json': tsconfig('nodenext', 'nodenext'),
    'tsconfig.bundler.json': tsconfig('esnext', 'bundler'),
  },
  commands: ['nodenext', 'bundler'].flatMap((resolution) => [
    tool('tsc', '-p', `tsconfig.${resolution}.json`),
    node(`${resolution}/app.js`),
  ]),
})

export const STEPS = [
  {
    name: 'plain JavaScript, the README',
    packages: [],
    texts: { 'jobs.mjs': block('ts').replace(': { to: string }', '') },
    commands: [{ args: ['node', 'jobs.mjs'], expects: sent }],
  },
  {
    name: 'TypeScript without a build, the README',
    packages: ['tsx'],
    texts: { 'jobs.mts': block('ts') },
    commands: [{ args: ['tsx', 'jobs.mts'], expects: sent }],
  },
  {
    name: 'CommonJS',
    type: 'commonjs',
    packages: [],
    files: ['required.cjs', 'imported.cjs'],
    commands: [node('required.cjs'), node('imported.cjs')],
  },
  typescript('5.9'),
  typescript('7'),
  { name: 'Express', packages: ['express@5'], files: ['server.mjs'], commands: [node('server.mjs')] },
  {
    name: 'esbuild, one file',
    packages: ['esbuild'],
    files: ['app.mjs'],
    commands: ['esm', 'cjs'].flatMap((format) => {
      const out = format === 'esm' ? 'out.mjs' : 'out.cjs'
      return [
        tool('esbuild', 'app.mjs', '--bundle', '--platform=node', `--format=${format}`, `--outfile=${out}`),
        node(out),
      ]
    }),
  },
  {
    name: 'Vite SSR',
    packages: ['vite'],
    files: ['app.mjs'],
    texts: {
      'vite.config.mjs': 'export default { build: { ssr: "app.mjs", outDir: "external" } }\n',
      'vite.bundled.config.mjs':
        'export default { build: { ssr: "app.mjs", outDir: "bundled" }, ssr: { noExternal: true } }\n',
    },
    commands: [
      tool('vite', 'build'),
      node('external/app.js'),
      tool('vite', 'build', '-c', 'vite.bundled.config.mjs'),
      node('bundled/app.js'),
    ],
  },
  {
    name: 'webpack',
    type: 'commonjs', // As webpack's output.
    packages: ['webpack', 'webpack-cli'],
    files: ['app.mjs', 'elsewhere.mjs'],
    commands: [
      {
        args: ['webpack', './app.mjs', '--target', 'node', '--mode', 'production', '-o', 'out'],
        expects: /compiled successfully/,
      },
      node('out/main.js'),
      node('elsewhere.mjs', 'out/main.js'),
    ],
  },
  {
    name: 'vitest, fake timers',
    packages: ['vitest'],
    files: ['jobs.test.mjs'],
    commands: [{ args: ['vitest', 'run'], expects: /2 passed/ }],
  },
  { name: 'a worker thread', packages: [], files: ['in-thread.mjs', 'app.mjs'], commands: [node('in-thread.mjs')] },
]

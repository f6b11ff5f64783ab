import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { root } from './run.mjs'

/**
 * @typedef {{ readonly line: number, readonly code: string }} Example
 *   One example, and the line of the source of its first line.
 */

/**
 * The examples in a file's doc comments: the text between «```ts» and «```» inside a comment of two stars.
 * @param {string} text
 * @returns {Example[]}
 */
export function examplesOf(text) {
  const examples = []
  for (const comment of text.matchAll(/\/\*\*[\s\S]*?\*\//g)) {
    for (const fence of comment[0].matchAll(/^[ \t]*(?:\/\*)?\*+[ \t]?```ts[ \t]*\n([\s\S]*?)^[ \t]*\*[ \t]?```/gm)) {
      const before = text.slice(0, comment.index + fence.index)
      const code = fence[1].replace(/^[ \t]*\*[ \t]?/gm, '')
      examples.push({ line: before.split('\n').length + 1, code })
    }
  }
  return examples
}

/**
 * Writes every example under src/ into `folder` as a module of its own, with a tsconfig that maps the package's name and
 * its subpaths to the sources. Returns how many there are.
 * @param {string} folder
 * @returns {number}
 */
export function writeExamples(folder) {
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  const sources = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' }).filter(
    (file) => /\.tsx?$/.test(file) && !/\.test(-d)?\.tsx?$/.test(file),
  )
  let count = 0
  for (const file of sources.sort()) {
    for (const { line, code } of examplesOf(readFileSync(join(root, 'src', file), 'utf8'))) {
      const name = `${file.replace(/\.tsx?$/, '').replace(/[/\\]/g, '.')}.line-${line}.ts`
      // The empty export makes a module of an example that imports nothing, so that it may use `await`.
      writeFileSync(join(folder, name), `${code}\nexport {}\n`)
      count++
    }
  }
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(configuration(folder), null, 2))
  return count
}

function configuration(folder) {
  const up = relative(folder, root).replaceAll('\\', '/')
  const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  const paths = {}
  for (const [subpath, target] of Object.entries(manifest.exports)) {
    const file = target.default?.match(/^\.\/dist\/(.*)\.js$/)?.[1]
    if (file !== undefined) paths[join(manifest.name, subpath).replaceAll('\\', '/')] = [`${up}/src/${file}.ts`]
  }
  return {
    extends: `${up}/tsconfig.json`,
    compilerOptions: {
      rootDir: up,
      noEmit: true,
      paths,
      typeRoots: [`${up}/node_modules/@types`],
      // An example shows how a value is made; it need not use it.
      noUnusedLocals: false,
      noUnusedParameters: false,
    },
    include: ['*.ts'],
  }
}

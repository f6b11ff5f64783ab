import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { instrument } from './instrument.mjs'

const require = createRequire(import.meta.url)
/** A change of this program changes what it writes: its files are part of every key of the cache. */
const OWN = ['transpile', 'instrument', 'mutations', 'sql-mutations']
  .map((name) => readFileSync(new URL(`./${name}.mjs`, import.meta.url), 'utf8'))
  .join('')

export const hashOf = (...texts) => createHash('sha256').update(texts.join('\0')).digest('hex').slice(0, 20)

/**
 * A TypeScript file as the body of a CommonJS module, with its mutants if it `isMutated`. CommonJS, since modules of ECMAScript cannot
 * be loaded a second time, and a mutant of a module-level constant needs that. Kept in `cache` by the hash of its text.
 *
 * @returns {{ file: string, hash: string, mutants: import('./instrument.mjs').Mutant[] }} `file` is where the JavaScript is
 */
export function transpile(root, path, isMutated, cache) {
  const text = readFileSync(join(root, path), 'utf8')
  const hash = hashOf(OWN, path, text, String(isMutated))
  const [file, listFile] = [join(cache, `${hash}.js`), join(cache, `${hash}.json`)]
  if (!existsSync(listFile)) {
    const { text: code, mutants } = isMutated ? instrument(path, text) : { text, mutants: [] }
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, toCommonJs(path, code))
    writeFileSync(listFile, JSON.stringify(mutants))
  }
  return { file, hash: hashOf(text), mutants: JSON.parse(readFileSync(listFile, 'utf8')) }
}

function toCommonJs(path, text) {
  const ts = require('typescript-5.9')
  const { outputText } = ts.transpileModule(text, {
    fileName: path,
    compilerOptions: {
      target: ts.ScriptTarget.ES2023,
      module: ts.ModuleKind.CommonJS,
      esModuleInterop: true,
      verbatimModuleSyntax: false,
      useDefineForClassFields: true,
    },
    transformers: { before: [renameForCommonJs(ts)] },
  })
  return outputText
}

/**
 * `import.meta` exists only in modules of ECMAScript: the registry passes `__meta` instead. A `require` that the file makes for itself gets
 * another name than the one that loads its imports.
 */
const renameForCommonJs = (ts) => (context) => (file) => {
  const named = (name) => context.factory.createIdentifier(name)
  const isMember = (node) => ts.isPropertyAccessExpression(node.parent) && node.parent.name === node
  const isOwnRequire = (node) => ts.isIdentifier(node) && node.text === 'require' && !isMember(node)
  const visit = (node) => {
    if (ts.isMetaProperty(node) && node.keywordToken === ts.SyntaxKind.ImportKeyword) return named('__meta')
    return isOwnRequire(node) ? named('__require') : ts.visitEachChild(node, visit, context)
  }
  return ts.visitNode(file, visit)
}

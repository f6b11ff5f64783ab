import { createRequire } from 'node:module'
import { mutationsOf } from './mutations.mjs'

const ts = createRequire(import.meta.url)('typescript-5.9')

/**
 * All mutants of one file in one text: each mutated place asks `__mutant(index)` which version of it runs, so that a process that has
 * loaded the file once runs every mutant of it.
 *
 * `source` is the line, and `nth` says which of the equal mutants of equal lines it is: together they name it in a list that outlives edits.
 *
 * @typedef {{ index: number, line: number, column: number, source: string, nth: number, operator: string, original: string, mutated: string }} Mutant
 * @param {string} path
 * @param {string} text
 * @returns {{ text: string, mutants: Mutant[] }}
 */
export function instrument(path, text) {
  const file = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true, ts.ScriptKind.TS)
  const mutants = []
  const lines = text.split('\n')

  /** Numbers a mutation and keeps how it reads in a report. */
  function add(node, { operator, original, mutated, offset }) {
    const { line, character } = file.getLineAndCharacterOfPosition(node.getStart(file) + offset)
    const index = mutants.length
    const source = lines[line].trim()
    const isAlike = (other) => other.source === source && other.original === original && other.mutated === mutated
    const nth = mutants.filter(isAlike).length + 1
    mutants.push({ index, line: line + 1, column: character + 1, source, nth, operator, original, mutated })
    return index
  }

  function emit(node) {
    if (isErased(node)) return rawText(node)
    const mutations = mutationsOf(node, text)
    // A mutant is numbered before those inside it: numbers then follow the text.
    const places = mutations.map((mutation) => ({ ...mutation, index: add(node, mutation) }))
    return wrap(node, emitChildren(node), places)
  }

  const rawText = (node) => text.slice(node.getStart(file), node.end)

  function emitChildren(node) {
    let out = ''
    let at = node.getStart(file)
    ts.forEachChild(node, (child) => {
      const from = child.getStart(file)
      if (from < at) return // A shorthand property names its value twice.
      out += text.slice(at, from) + emit(child)
      at = child.end
    })
    return out + text.slice(at, node.end)
  }

  const body = file.statements.map((statement) => emit(statement)).join('\n')
  return { text: body, mutants }
}

/** What has no code at run time, and names of properties and modules: never mutated. */
function isErased(node) {
  return (
    ts.isTypeNode(node) ||
    ts.isInterfaceDeclaration(node) ||
    ts.isTypeAliasDeclaration(node) ||
    ts.isImportDeclaration(node) ||
    ts.isExportDeclaration(node) ||
    ts.isTypeParameterDeclaration(node) ||
    (ts.canHaveModifiers(node) && ts.getModifiers(node)?.some(({ kind }) => kind === ts.SyntaxKind.DeclareKeyword))
  )
}

function wrap(node, inner, places) {
  if (ts.isExpressionStatement(node)) return wrapStatement(inner, places)
  if (places.length === 0) return inner
  if (ts.isStatement(node)) return ts.isBlock(node) ? wrapLoopBody(inner, places) : wrapStatement(inner, places)
  const choices = places.map(({ index, code }) => `__mutant(${index}) ? (${code}) : `)
  return `(${choices.join('')}(${inner}))`
}

/** A statement that a mutant leaves out. Braces keep it one statement, and no line before it can continue into it. */
function wrapStatement(inner, places) {
  const condition = places.map(({ index }) => `!__mutant(${index})`).join(' && ')
  return condition === '' ? `{ ;${inner}; }` : `{ if (${condition}) { ;${inner}; } }`
}

/** The body of a loop, which a mutant ends after one turn. */
function wrapLoopBody(inner, places) {
  return `${inner.slice(0, -1)}; ${places.map(({ index }) => `if (__mutant(${index})) break;`).join(' ')} }`
}

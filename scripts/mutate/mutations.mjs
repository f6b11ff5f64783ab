import { createRequire } from 'node:module'
import { looksLikeSql, sqlMutations } from './sql-mutations.mjs'

const ts = createRequire(import.meta.url)('typescript-5.9')
const { SyntaxKind } = ts

const BOUNDARIES = { '<': '<=', '<=': '<', '>': '>=', '>=': '>' }
const NEGATIONS = { '<': '>=', '<=': '>', '>': '<=', '>=': '<', '===': '!==', '!==': '===', '==': '!=', '!=': '==' }
const ARITHMETIC = { '+': '-', '-': '+', '*': '/', '/': '*', '%': '*', '+=': '-=', '-=': '+=', '*=': '/=', '/=': '*=' }
/** Methods whose call can be left out: the value keeps its type. */
const REMOVABLE = new Set(
  'filter slice toSorted sort toReversed reverse toSpliced trim trimEnd trimStart toLowerCase toUpperCase normalize'.split(
    ' ',
  ),
)
const SWAPPED = new Map(
  Object.entries({
    some: 'every',
    every: 'some',
    startsWith: 'endsWith',
    endsWith: 'startsWith',
    min: 'max',
    max: 'min',
    floor: 'ceil',
    ceil: 'floor',
    unshift: 'push',
    shift: 'pop',
  }),
)
/** Above it, a number plus one is a tuned value that changes nothing a test should see, if its name says that it is a time. */
const SMALL_NUMBER_MAX = 10

/**
 * What can go wrong at one node, without the nodes inside it. `code` replaces the whole text of the node; a statement is left out,
 * and the block of a loop ends it after one turn. `original` and `mutated` are for the report, `offset` is where the change is.
 *
 * @returns {{ operator: string, original: string, mutated: string, code: string, offset: number }[]}
 */
export function mutationsOf(node, text) {
  if (isMessage(node)) return []
  const found = MUTATORS.flatMap((mutate) => mutate(node, text))
  const own = textOf(node, text)
  return found.map(({ operator, original = own, mutated, code = mutated, offset = 0 }) => {
    return { operator, original, mutated, code, offset }
  })
}

const MUTATORS = [
  binary,
  condition,
  unary,
  literal,
  sqlText,
  optionalChain,
  method,
  removedStatement,
  loopExit,
  returned,
  arrayShortened,
  spreadDropped,
  regexAnchors,
]

function binary(node, text) {
  if (!ts.isBinaryExpression(node)) return []
  const [left, sign, right] = [node.left, node.operatorToken, node.right].map((part) => textOf(part, text))
  const as = (operator, mutated) => [{ operator, mutated }]
  const signed = (operator, other) => as(operator, `${left} ${other} ${right}`)
  if (sign === '??') return [...as('?? left', left), ...as('?? right', right)]
  if (sign === '&&' || sign === '||') return droppedClauses(node, text)
  const boundary = BOUNDARIES[sign] ? signed('boundary', BOUNDARIES[sign]) : []
  // Where it is the whole condition it is set to true and to false, and where it is a clause it is dropped.
  if (NEGATIONS[sign])
    return isCondition(node) || isClause(node) ? boundary : [...boundary, ...signed('negated', NEGATIONS[sign])]
  if (!ARITHMETIC[sign] || isText(node.left) || isText(node.right)) return []
  return signed('arithmetic', ARITHMETIC[sign])
}

/** `a && b && c` with each of its clauses left out in turn. */
function droppedClauses(node, text) {
  const sign = node.operatorToken.kind
  const isChain = (each) => ts.isBinaryExpression(each) && each.operatorToken.kind === sign
  if (isChain(node.parent) && node.parent.left === node) return []
  const clauses = [node.right]
  let left = node.left
  for (; isChain(left); left = left.left) clauses.unshift(left.right)
  clauses.unshift(left)
  const joined = (kept) => kept.map((clause) => textOf(clause, text)).join(` ${node.operatorToken.getText()} `)
  return clauses.map((dropped) => {
    const mutated = joined(clauses.filter((clause) => clause !== dropped))
    return { operator: 'clause dropped', mutated }
  })
}

function condition(node, text) {
  if (!isCondition(node) || node.kind === SyntaxKind.TrueKeyword || node.kind === SyntaxKind.FalseKeyword) return []
  const original = textOf(node, text)
  const to = (mutated) => ({ operator: 'condition', original, mutated })
  // A loop whose condition is always true only hangs.
  return isLoop(node.parent) ? [to('false')] : [to('true'), to('false')]
}

function unary(node, text) {
  if (ts.isPrefixUnaryExpression(node)) {
    const operand = textOf(node.operand, text)
    if (node.operator === SyntaxKind.ExclamationToken)
      return isCondition(node) || isClause(node) || isNegated(node) ? [] : [{ operator: 'negated', mutated: operand }]
    if (node.operator === SyntaxKind.MinusToken) return [{ operator: 'arithmetic', mutated: operand }]
  }
  return []
}

/** `!!x` makes a boolean: without one sign it is negated, so one of the two is enough. */
const isNegated = (node) => ts.isPrefixUnaryExpression(node.parent) && node.parent.operator === node.operator

function literal(node, text) {
  if (node.kind === SyntaxKind.TrueKeyword) return [{ operator: 'literal', mutated: 'false' }]
  if (node.kind === SyntaxKind.FalseKeyword) return [{ operator: 'literal', mutated: 'true' }]
  if (ts.isNumericLiteral(node)) return isTuned(node, text) || !decides(node) ? [] : [numberPlusOne(node, text)]
  if (ts.isStringLiteral(node) && decides(node) && isCode(node.text)) return [{ operator: 'literal', mutated: `''` }]
  return []
}

const numberPlusOne = (node, text) => ({ operator: 'literal', mutated: `${textOf(node, text)} + 1` })

/** An id, a name, a state: no text for people. */
const isCode = (value) => value !== '' && !/\s/.test(value)

/** Whether the value of a literal is used as it is; not the name of a property or module, and not compared (the comparison is mutated). */
function decides(node) {
  const { parent } = node
  if (ts.isNumericLiteral(node)) return !ts.isPropertyAssignment(parent) || parent.initializer === node
  return (
    (ts.isPropertyAssignment(parent) && parent.initializer === node) ||
    (ts.isVariableDeclaration(parent) && parent.initializer === node) ||
    (ts.isParameter(parent) && parent.initializer === node) ||
    (ts.isConditionalExpression(parent) && parent.condition !== node) ||
    (ts.isBinaryExpression(parent) && parent.operatorToken.kind === SyntaxKind.QuestionQuestionToken) ||
    ts.isReturnStatement(parent) ||
    ts.isArrowFunction(parent) ||
    ts.isCaseClause(parent)
  )
}

function isTuned(node, text) {
  if (Number(node.text) <= SMALL_NUMBER_MAX) return false
  const named = ts.findAncestor(node, (each) => ts.isVariableDeclaration(each) || ts.isPropertyAssignment(each))
  return named !== undefined && /(_MS|Ms|_BYTES)$/.test(textOf(named.name, text))
}

function sqlText(node, text) {
  if (!ts.isTemplateExpression(node) && !ts.isNoSubstitutionTemplateLiteral(node)) return []
  if (ts.isTaggedTemplateExpression(node.parent)) return []
  return isSql(node) ? sqlMutations(textOf(node, text)) : []
}

/** Statements are only under store/ (a house rule): words of SQL elsewhere are text. */
const isSql = (node) => /\bstore\//.test(node.getSourceFile().fileName) && looksLikeSql(node.getText())

/** One `?.` of a chain becomes a plain access. The whole chain is replaced: a part of it in brackets would end it early. */
function optionalChain(node, text) {
  if (!ts.isOptionalChain(node) || ts.isOptionalChain(node.parent)) return []
  const mutations = []
  for (let part = node; part !== undefined && ts.isOptionalChain(part); part = part.expression) {
    const dots = part.questionDotToken
    if (dots === undefined) continue
    const [from, to] = [node.getStart(), node.end]
    const mutated =
      text.slice(from, dots.getStart()) + (ts.isPropertyAccessExpression(part) ? '.' : '') + text.slice(dots.end, to)
    mutations.push({ operator: 'optional chain', mutated })
  }
  return mutations
}

function method(node, text) {
  if (!ts.isCallExpression(node) || !ts.isPropertyAccessExpression(node.expression)) return []
  if (ts.isOptionalChain(node)) return []
  const [object, name] = [textOf(node.expression.expression, text), node.expression.name.text]
  if (REMOVABLE.has(name) && !ts.isExpressionStatement(node.parent))
    return [{ operator: 'method removed', mutated: object }]
  if (!SWAPPED.has(name) || (/^(min|max|floor|ceil)$/.test(name) && object !== 'Math')) return []
  const rest = text.slice(node.expression.end, node.end)
  return [{ operator: 'method swapped', mutated: `${object}.${SWAPPED.get(name)}${rest}` }]
}

function removedStatement(node) {
  if (!isRemovable(node) || isAloneInIf(node)) return []
  return [{ operator: 'statement removed', mutated: '' }]
}

function isRemovable(node) {
  if (ts.isExpressionStatement(node)) return !isSuperCall(node.expression) && !ts.isStringLiteral(node.expression)
  if (ts.isReturnStatement(node)) return node.expression === undefined
  if (ts.isThrowStatement(node) || ts.isContinueStatement(node)) return true
  return (
    ts.isBreakStatement(node) &&
    ts.findAncestor(node, (each) => ts.isCaseClause(each) || isLoop(each))?.kind !== SyntaxKind.CaseClause
  )
}

const isSuperCall = (node) => ts.isCallExpression(node) && node.expression.kind === SyntaxKind.SuperKeyword

/** The only statement of an `if` without `else`: a false condition leaves it out too. */
function isAloneInIf(node) {
  const { parent } = node
  const inside = ts.isBlock(parent) && parent.statements.length === 1 ? parent : node
  return ts.isIfStatement(inside.parent) && inside.parent.elseStatement === undefined
}

function loopExit(node) {
  if (!ts.isBlock(node) || !isLoop(node.parent) || node.parent.statement !== node) return []
  const last = node.statements.at(-1)
  if (last === undefined || ts.isReturnStatement(last) || ts.isThrowStatement(last) || ts.isBreakStatement(last))
    return []
  return [{ operator: 'loop ends after one turn', original: 'loop', mutated: 'break' }]
}

const isLoop = (node) => ts.isIterationStatement(node, false)

/** A constant instead of what a function returns. Expressions that are mutated in another way are left to that. */
function returned(node, text) {
  const isBody = ts.isArrowFunction(node.parent) && node.parent.body === node
  if (!isBody && !(ts.isReturnStatement(node.parent) && node.parent.expression === node)) return []
  if (!ts.isCallExpression(node) && !ts.isIdentifier(node) && !ts.isPropertyAccessExpression(node)) return []
  const maker = ts.findAncestor(node.parent, (each) => ts.isFunctionLike(each))
  const type = maker?.type === undefined ? undefined : textOf(maker.type, text)
  const own = textOf(node, text)
  if (type === undefined || own === 'undefined') return []
  return constantsOf(type).map((mutated) => ({ operator: 'returned constant', mutated }))
}

function constantsOf(type) {
  const inner = /^Promise<(.*)>$/s.exec(type)?.[1] ?? type
  if (inner === 'boolean' || / is /.test(inner)) return ['true', 'false']
  if (inner === 'number') return ['0']
  if (inner === 'string') return [`''`]
  if (/\[\]$|^(readonly )?(Readonly)?Array</.test(inner)) return ['[]']
  return /^(void|never|unknown|asserts .*)$|^(Async)?(Iterable)?(Iterator|Generator)</.test(inner) ? [] : ['undefined']
}

/** A list without one of its names, or an empty one. */
function arrayShortened(node, text) {
  if (!ts.isArrayLiteralExpression(node) || node.elements.length === 0) return []
  const { parent, elements } = node
  const isTarget = ts.isBinaryExpression(parent) && parent.left === node
  const isTuple = ts.isVariableDeclaration(parent) && ts.isArrayBindingPattern(parent.name)
  if (isTarget || isTuple) return []
  if (elements.length > 1 && elements.every((each) => ts.isStringLiteral(each) && isCode(each.text))) {
    return elements.map((dropped) => {
      const kept = elements.filter((each) => each !== dropped).map((each) => textOf(each, text))
      const [original, offset] = [textOf(dropped, text), dropped.getStart() - node.getStart()]
      return { operator: 'entry dropped', original, mutated: '(dropped)', code: `[${kept.join(', ')}]`, offset }
    })
  }
  if (ts.isArrayLiteralExpression(parent) && elements.length < 4) return []
  return [{ operator: 'array emptied', mutated: '[]' }]
}

/** `{ ...given, own }` without `given`. A spread of a choice is mutated where it chooses. */
function spreadDropped(node) {
  if (!ts.isSpreadAssignment(node.parent) || node.parent.expression !== node) return []
  if (!ts.isIdentifier(node) && !ts.isPropertyAccessExpression(node) && !ts.isCallExpression(node)) return []
  return [{ operator: 'spread dropped', mutated: '{}' }]
}

function regexAnchors(node, text) {
  if (!ts.isRegularExpressionLiteral(node)) return []
  const raw = textOf(node, text)
  const mutations = []
  if (raw.startsWith('/^')) mutations.push({ operator: 'regex', mutated: `/${raw.slice(2)}` })
  if (/[^\\]\$\/[a-z]*$/.test(raw)) mutations.push({ operator: 'regex', mutated: raw.replace(/\$(\/[a-z]*)$/, '$1') })
  return mutations.filter(({ mutated }) => !mutated.startsWith('//'))
}

/** Inside the message of an error, or inside a text for people: not mutated. */
function isMessage(node) {
  const inside = ts.findAncestor(node, (each) => {
    if (ts.isStatement(each) || ts.isFunctionLike(each)) return 'quit'
    if (ts.isNewExpression(each.parent) && each.parent.expression.getText().endsWith('Error'))
      return each !== each.parent.expression
    if (!ts.isTemplateSpan(each.parent) || each.parent.expression !== each) return false
    const whole = each.parent.parent
    return (
      /\s/.test(
        [whole.head, ...whole.templateSpans.map(({ literal: part }) => part)].map(({ text }) => text).join(''),
      ) && !isSql(whole)
    )
  })
  return inside !== undefined
}

function isCondition(node) {
  const { parent } = node
  if (ts.isIfStatement(parent) || ts.isWhileStatement(parent) || ts.isDoStatement(parent))
    return parent.expression === node
  return (ts.isConditionalExpression(parent) || ts.isForStatement(parent)) && parent.condition === node
}

function isClause({ parent }) {
  return ts.isBinaryExpression(parent) && ['&&', '||'].includes(parent.operatorToken.getText())
}

const isText = (node) => ts.isStringLiteralLike(node) || ts.isTemplateExpression(node)

const textOf = (node, text) => text.slice(node.getStart(), node.end)

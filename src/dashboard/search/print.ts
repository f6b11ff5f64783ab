import { parseSearch } from './parse.js'
import type { Step, Term, Value } from './parse.js'

/** The text of a search: it reads as the same terms. */
export function printSearch(terms: readonly Term[]): string {
  return terms.map(printTerm).join(' ')
}

export function printTerm({ negated, name, path, operator, values }: Term): string {
  const [sign, first] = [negated ? '-' : '', values[0]]
  if (name === undefined) return sign + (first === undefined ? '""' : printWord(first, sign))
  const listed = values.map((value, i) => printValue(value, i === 0 ? (operator ?? '') : undefined))
  return `${sign}${name}${path.map(printStep).join('')}:${operator ?? ''}${listed.join(',')}`
}

function printStep(step: Step): string {
  if (typeof step === 'number') return `[${step}]`
  return /^[\p{L}\p{N}_$-]+$/u.test(step) ? `.${step}` : `.${quote(step)}`
}

/** A word that would read as a qualifier, or as negated, needs quotes. */
function printWord(value: Value, sign: string): string {
  const bare = printBare(value)
  const read = bare === undefined ? undefined : parseSearch(sign + bare)
  const isWord = read?.ok === true && read.terms[0]?.name === undefined && read.terms[0]?.values[0]?.text === value.text
  return isWord && bare !== undefined ? bare : quote(value.text)
}

/** `after`: the operator before it; undefined when it is not the first. */
function printValue(value: Value, after: string | undefined): string {
  const bare = printBare(value)
  const joins = (after === '' && /^[<>]/.test(value.text)) || (/^[<>]$/.test(after ?? '') && value.text.startsWith('='))
  return bare === undefined || joins || value.text.includes(',') ? quote(value.text) : bare
}

/** Undefined when it needs quotes. */
function printBare({ text, quoted, prefix }: Value): string | undefined {
  if (quoted || text === '' || /\s/.test(text) || (!prefix && text.length > 1 && text.endsWith('*'))) return undefined
  return text.replaceAll('\\', '\\\\').replaceAll('"', '\\"') + (prefix ? '*' : '')
}

function quote(text: string): string {
  return `"${text.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`
}

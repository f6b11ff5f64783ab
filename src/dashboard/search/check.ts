import { didYouMean } from '../../codec/near-name.js'
import type { SearchProblem, Term, Value } from './parse.js'
import { KINDS, QUALIFIERS, STATES } from './qualifiers.js'
import type { Qualifier } from './qualifiers.js'
import { durationOf, isInstant } from './times.js'

/** The first problem of the terms: an unknown qualifier, state, duration or comparison. */
export function checkSearch(
  terms: readonly Term[],
  qualifiers: readonly Qualifier[] = QUALIFIERS,
): SearchProblem | undefined {
  for (const term of terms) {
    const found = term.name === undefined ? undefined : termProblem(term, term.name, qualifiers)
    if (found !== undefined) return found
  }
  return undefined
}

function termProblem(term: Term, name: string, qualifiers: readonly Qualifier[]): SearchProblem | undefined {
  const { from, path, operator, values } = term
  const nameEnd = from + (term.negated ? 1 : 0) + name.length
  const known = qualifiers.find((each) => each.name === name)
  if (known === undefined) {
    const names = qualifiers.map((each) => each.name)
    return {
      text: `There is no qualifier ${name}.`,
      hint: meant(name, names) ?? `There are: ${names.join(', ')}.`,
      from,
      to: nameEnd,
    }
  }
  if (known.hasPath === true && path.length === 0)
    return { text: `${name} needs a path.`, hint: `Such as ${known.example}.`, from, to: nameEnd }
  if (known.hasPath !== true && path.length > 0)
    return { text: `${name} has no path.`, hint: `Write ${known.example}.`, from, to: nameEnd }
  if (operator !== undefined && known.compares !== true)
    return { text: `${name} cannot be compared.`, hint: `Write ${known.example}.`, from, to: term.to }
  for (const value of values) {
    const wrong = valueProblem(known, value, operator !== undefined)
    if (wrong !== undefined) return { ...wrong, from: value.from, to: value.to }
  }
  return undefined
}

type Wrong = Pick<SearchProblem, 'text' | 'hint'>

function valueProblem({ of, name }: Qualifier, { text, prefix }: Value, isCompared: boolean): Wrong | undefined {
  switch (of) {
    case 'state':
      return oneOf(text, STATES, 'state')
    case 'is':
      return oneOf(text, KINDS, 'kind')
    case 'time':
      if (isInstant(text)) return undefined
      return {
        text: `${text} is no time.`,
        hint: `A duration is a number and ms, s, m, h, d or w, such as ${name}:30d; a time is 2026-11-15, 14:02, yesterday or deploy.`,
      }
    case 'span':
      if (durationOf(text) !== undefined) return undefined
      return {
        text: `${text} is no duration.`,
        hint: `A duration is a number and ms, s, m, h, d or w, such as ${name}:>30s.`,
      }
    case 'number':
      return isNumber(text) ? undefined : { text: `${text} is no number.`, hint: `Such as ${name}:>3.` }
    case 'value':
      if (!isCompared || isNumber(text) || !Number.isNaN(Date.parse(text))) return undefined
      return { text: `${text} is no number and no date, so it cannot be compared.`, hint: null }
    case 'text':
      return prefix && text === '' ? { text: 'A prefix has at least one character.', hint: null } : undefined
    default:
      return of satisfies never
  }
}

export function isNumber(text: string): boolean {
  return /^-?\d{1,20}(\.\d{1,20})?$/.test(text)
}

function oneOf(text: string, all: readonly string[], what: string): Wrong | undefined {
  if (all.includes(text)) return undefined
  const near = meant(text, all)
  return { text: `No ${what} ${text}.`, hint: `${near === undefined ? '' : `${near} `}There are: ${all.join(', ')}.` }
}

/** "Did you mean state?" */
function meant(given: string, known: readonly string[]): string | undefined {
  const longer = given.length < BEGINNING_MIN ? undefined : known.find((name) => name.startsWith(given))
  const near = longer ?? /"(.*)"/.exec(didYouMean(given, known))?.[1]
  return near === undefined ? undefined : `Did you mean ${near}?`
}

/** A shorter text is the beginning of too many names. */
const BEGINNING_MIN = 3

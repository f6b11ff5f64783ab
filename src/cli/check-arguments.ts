import { parseArgs } from 'citty'
import type { ArgsDef, CommandDef } from 'citty'
import { didYouMean } from '../codec/near-name.js'
import { show } from '../codec/show.js'
import { InvalidOptionsError } from '../errors.js'
import type { Problem } from '../errors.js'

/** The parser accepts unknown options, and a misspelt one would be ignored. All problems are reported together. */
export function checkArguments(name: string, command: CommandDef, rawArgs: string[]): void {
  const known = command.args as ArgsDef
  const { _: words, ...given } = parseArgs(rawArgs, known)
  const problems = [
    ...words.map((word): Problem => ({ path: '', message: `${show(word)} is not expected: it takes options only` })),
    ...Object.entries(given)
      .filter(([option]) => !isCopyOf(option, known))
      .flatMap(([option, value]) => problemOf(option, value, known)),
  ]
  if (problems.length > 0) throw new InvalidOptionsError(`millrace ${name}`, problems)
}

/** The parser gives `--read-only` a second time, as `readOnly`. */
function isCopyOf(option: string, known: ArgsDef): boolean {
  const dashed = option.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
  return dashed !== option && Object.hasOwn(known, dashed)
}

function problemOf(option: string, value: unknown, known: ArgsDef): Problem[] {
  const path = option.length === 1 ? `-${option}` : `--${option}`
  if (!Object.hasOwn(known, option)) {
    const names = Object.keys(known).map((each) => `--${each}`)
    return [{ path, message: `is not an option${didYouMean(path, names)}` }]
  }
  // The parser takes the next word for the value, also when that is the next option.
  const isMissing = value !== undefined && (typeof value !== 'string' || value === '' || value.startsWith('--'))
  return known[option]?.type === 'string' && isMissing ? [{ path, message: 'needs a value' }] : []
}

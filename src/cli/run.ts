import { stripVTControlCharacters } from 'node:util'
import { defineCommand, renderUsage, runCommand } from 'citty'
import type { CommandDef } from 'citty'
import { didYouMean } from '../codec/near-name.js'
import { reason, show } from '../codec/show.js'
import { InvalidOptionsError, StoreError } from '../errors.js'
import { checkArguments } from './check-arguments.js'
import { check } from './commands/check.js'
import { dashboard } from './commands/dashboard.js'
import { migrate } from './commands/migrate.js'
import { replay } from './commands/replay.js'
import type { Terminal } from './terminal.js'
import { versionOfPackage } from '../world/package-version.js'

// Each command has its own type of options; here only the common part is used.
const COMMANDS: Readonly<Record<string, CommandDef>> = {
  check: check as unknown as CommandDef,
  dashboard: dashboard as unknown as CommandDef,
  migrate: migrate as unknown as CommandDef,
  replay: replay as unknown as CommandDef,
}

const MILLRACE = defineCommand({
  meta: { name: 'millrace', description: 'Durable background jobs' },
  subCommands: { ...COMMANDS },
})

/** The exit codes of every command. */
const DONE = 0
const FAILED = 1
const MISUSED = 2
const NO_STORE = 4
/** The store was not reached: there is none, no server answers, or it refuses the login. */
const NOT_REACHED = ['E_STORE_UNREACHABLE', 'E_STORE_MISSING', 'E_STORE_LOGIN']

/** Runs a command line and returns its exit code. Every error is printed as a sentence; nothing is thrown. */
export async function run(argv: readonly string[], terminal: Terminal): Promise<number> {
  const [name = '', ...rest] = argv
  try {
    if (name === '' || isHelp(name)) {
      terminal[name === '' ? 'stderr' : 'stdout'](await usageOf(MILLRACE))
      return name === '' ? MISUSED : DONE
    }
    if (name === '--version' || name === '-v') {
      terminal.stdout(versionOfPackage())
      return DONE
    }
    const command = commandOf(name)
    if (rest.some(isHelp)) terminal.stdout(await usageOf(command, MILLRACE))
    else {
      checkArguments(name, command, rest)
      await runCommand(command, { rawArgs: rest, data: terminal })
    }
    return DONE
  } catch (error) {
    terminal.stderr(sentenceOf(error, name))
    return exitCodeOf(error)
  }
}

function exitCodeOf(error: unknown): number {
  if (error instanceof InvalidOptionsError) return MISUSED
  return error instanceof StoreError && NOT_REACHED.includes(error.code) ? NO_STORE : FAILED
}

const isHelp = (word: string): boolean => word === '--help' || word === '-h'

/** Without colours: the library would colour it also for a pipe. */
async function usageOf(command: CommandDef, parent?: CommandDef): Promise<string> {
  return stripVTControlCharacters(await renderUsage(command, parent)).replaceAll(/ +$/gm, '')
}

function commandOf(name: string): CommandDef {
  const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined
  if (command !== undefined) return command
  const known = Object.keys(COMMANDS)
  const near = didYouMean(name, known)
  throw new InvalidOptionsError('millrace', [
    { path: '', message: `${show(name)} is not a command${near === '' ? `; there is ${known.join(', ')}` : near}` },
  ])
}

function sentenceOf(error: unknown, name: string): string {
  const message = reason(error)
  return message.startsWith('millrace') ? message : `millrace ${name}: ${message}`
}

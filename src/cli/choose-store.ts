import { InvalidOptionsError } from '../errors.js'
import { sqlite } from '../index.js'
import type { StoreChoice } from '../index.js'
import { postgres } from '../postgres.js'
import { readEnvironment } from '../world/process.js'

/** The options of every command that select its store. */
export const STORE_ARGUMENTS = {
  store: {
    type: 'string',
    description: 'the path of an SQLite file or a postgres:// URL; else $MILLRACE_STORE',
    valueHint: 'path or URL',
  },
  schema: {
    type: 'string',
    description: 'PostgreSQL: the schema of the tables; else the URL’s ?schema=, else "millrace"',
    valueHint: 'name',
  },
} as const

/** A command changes a store, so there is no default: `./millrace.db` must be named too. */
export function chooseStore(
  command: string,
  given: { readonly store?: string | undefined; readonly schema?: string | undefined },
): StoreChoice {
  const store = given.store ?? readEnvironment().store
  if (store === undefined)
    throw misuse(
      command,
      '--store',
      'is missing: give the path of the file or the postgres:// URL, or set MILLRACE_STORE',
    )
  if (/^\s*postgres(ql)?:/.test(store)) return postgres(store, { schema: given.schema })
  if (given.schema !== undefined) throw misuse(command, '--schema', 'is of PostgreSQL; an SQLite file has none')
  if (store === ':memory:') throw misuse(command, '--store', 'must be a file: a store in memory ends with this command')
  return sqlite(store)
}

export function misuse(command: string, path: string, message: string): InvalidOptionsError {
  return new InvalidOptionsError(`millrace ${command}`, [{ path, message }])
}

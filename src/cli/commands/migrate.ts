import { defineCommand } from 'citty'
import { show } from '../../codec/show.js'
import { StoreError } from '../../errors.js'
import type { Migrations } from '../../store/migrations.js'
import { chooseStore, misuse, STORE_ARGUMENTS } from '../choose-store.js'
import type { Terminal } from '../terminal.js'

/** Brings the tables of a store up to date, or prints the SQL that would. */
export const migrate = defineCommand({
  meta: { name: 'migrate', description: 'Bring the tables of a store up to date' },
  args: {
    ...STORE_ARGUMENTS,
    print: { type: 'boolean', description: 'print the SQL and run nothing' },
    from: {
      type: 'string',
      description: 'with --print: the version to begin at, 0 for an empty database; else the one the database has',
      valueHint: 'version',
    },
  },
  async run({ args, data }) {
    const terminal = data as Terminal
    const { migrations } = chooseStore('migrate', { store: args.store, schema: args.schema })
    if (migrations === undefined) return
    const from = versionOf(args.from, migrations.latest)
    if (args.print === true) terminal.stdout(sqlFrom(migrations, from ?? (await foundVersion(migrations, terminal))))
    else if (from !== undefined)
      throw misuse('migrate', '--from', 'needs --print: a migration begins at the version of the tables')
    else terminal.stdout(await applied(migrations, terminal))
  },
})

function versionOf(given: string | undefined, latest: number): number | undefined {
  if (given === undefined) return undefined
  const version = /^\d+$/.test(given) ? Number(given) : NaN
  if (version <= latest) return version
  throw misuse('migrate', '--from', `must be a version from 0 to ${latest}, got ${show(given)}`)
}

/** Without a database its version is unknown: SQL for an empty one could be run on one that is not empty. */
const ABSENT = ['E_STORE_UNREACHABLE', 'E_STORE_MISSING', 'E_NO_PG']

async function foundVersion(migrations: Migrations, { world }: Terminal): Promise<number> {
  try {
    return (await migrations.inspect(world)).version
  } catch (error) {
    if (!(error instanceof StoreError) || !ABSENT.includes(error.code)) throw error
    const message = `${error.message}; for the SQL of an empty database, which asks none, add --from 0`
    throw new StoreError(error.code, message, { cause: error })
  }
}

function sqlFrom(migrations: Migrations, version: number): string {
  return version === migrations.latest
    ? `-- Nothing to do: the tables are at version ${version}.`
    : migrations.print(version)
}

async function applied(migrations: Migrations, { world }: Terminal): Promise<string> {
  const { name, from } = await migrations.apply(world)
  return from === migrations.latest
    ? `${name}: nothing to do, the tables are at version ${from}`
    : `${name}: the tables went from version ${from} to ${migrations.latest}`
}

import { StoreError } from '../errors.js'
import type { World } from '../world/world.js'
import type { StoreFinding } from './info.js'

/** Migrates a store's tables without opening the store for work; `millrace migrate` calls it. */
export interface Migrations {
  /** The schema version that this release of Millrace needs. */
  readonly latest: number
  /** The version of the tables, 0 when there are none. It writes nothing and creates no file. */
  inspect(world: World): Promise<{ readonly name: string; readonly version: number }>
  /** Migrates the tables in one transaction. If several processes call it, one migrates and the others find it done. */
  apply(world: World): Promise<{ readonly name: string; readonly from: number }>
  /** The SQL from a version to the latest. */
  print(from: number): string
}

/**
 * Refuses an old schema when only an operator may change it. `name` and `command` contain no password; `who` may run
 * the command.
 */
export function refuseOlder(name: string, version: number, latest: number, command: string, who = ''): never {
  const has = version === 0 ? 'has no tables of Millrace' : `has schema version ${version}`
  throw new StoreError(
    'E_SCHEMA_OLD',
    `${name} ${has} and this Millrace needs version ${latest}, but autoMigrate is false; run \`${command}\`${who} first, or leave autoMigrate on`,
  )
}

/** The tables changed under a running process: a newer version migrated them, or an older copy was restored. */
export function schemaFindings(version: number, latest: number): StoreFinding[] {
  if (version === latest) return []
  const isNewer = version > latest
  return [
    {
      kind: 'migrations',
      text: `The tables have schema version ${version}, and this process knows version ${latest}.`,
      since: undefined,
      effect: isNewer
        ? 'This process works on beside a version that is one newer. It cannot be started again.'
        : 'Migrations are pending: calls of this process fail where they need what is missing.',
      mend: isNewer
        ? 'Deploy the newer version here too.'
        : 'Run `npx millrace migrate`, or restart this process with autoMigrate on.',
    },
  ]
}

/** The shell command that migrates a store. */
export function migrateCommand(store: string, ...more: readonly string[]): string {
  return ['npx millrace migrate --store', store, ...more].map((word, i) => (i === 0 ? word : shellWord(word))).join(' ')
}

function shellWord(text: string): string {
  return /^[\w./:@=+-]+$/.test(text) ? text : `'${text.replaceAll(`'`, `'\\''`)}'`
}

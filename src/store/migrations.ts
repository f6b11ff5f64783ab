import { StoreError } from '../errors.js'
import type { World } from '../world/world.js'

/** How a store's tables are brought up to date apart from opening it for work: what `millrace migrate` calls. */
export interface Migrations {
  /** The version that this Millrace needs. */
  readonly latest: number
  /** The version of the tables, 0 where there are none. Nothing is written and nothing is made. */
  look(world: World): Promise<{ readonly name: string; readonly version: number }>
  /** Brings the tables up to date in one transaction; of several processes one does it, and the others find it done. */
  apply(world: World): Promise<{ readonly name: string; readonly from: number }>
  /** The SQL that leads from a version to the latest. */
  print(from: number): string
}

/** Tables that only a person may change. `name` and `command` have no password in them; `who` may run it. */
export function refuseOlder(name: string, version: number, latest: number, command: string, who = ''): never {
  const has = version === 0 ? 'has no tables of Millrace' : `has schema version ${version}`
  throw new StoreError(
    'E_SCHEMA_OLD',
    `${name} ${has} and this Millrace needs version ${latest}, but autoMigrate is false; run \`${command}\`${who} first, or leave autoMigrate on`,
  )
}

/** What to type, to bring a store up to date. */
export function migrateCommand(store: string, ...more: readonly string[]): string {
  return ['npx millrace migrate --store', store, ...more].map((word, i) => (i === 0 ? word : shellWord(word))).join(' ')
}

function shellWord(text: string): string {
  return /^[\w./:@=+-]+$/.test(text) ? text : `'${text.replaceAll(`'`, `'\\''`)}'`
}

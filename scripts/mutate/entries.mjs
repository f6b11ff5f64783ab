import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** Tests of behaviour in `test/` that run in one process, without real time to wait for and without built files. */
const BEHAVIOUR = [
  'engine',
  'bad-input',
  'options',
  'foreign-option-names',
  'cancel',
  'hooks',
  'context',
  'unique',
  'timers',
  'findings',
  'links',
  'recurring',
  'groups',
  'sequences',
  'isolation',
  'liveness',
  'clocks',
  'secrets',
  'store-gone',
  'open-refused',
  'statistics',
  'why',
  'changes',
  'lists',
  'live',
  'telemetry',
  'health',
  'actions',
  'find-scan',
  'limits',
  'outages',
  'old-payloads',
  'workflows',
  'workflow-commands',
  'long-work',
]
/** Of PostgreSQL alone. */
const OF_POSTGRES = [
  'postgres-interleavings',
  'postgres-races',
  'postgres-sql',
  'postgres-unknown-outcome',
  'postgres-transactions',
  'postgres-keyed-inserts',
  'postgres-group-races',
  'postgres-handles',
  'postgres-locks',
  'postgres-round-trips',
]
const BEHAVIOUR_ON_POSTGRES = ['links', 'groups', 'recurring', 'unique', 'cancel', 'sequences']
/** They take minutes, or load other libraries. */
const LEFT_OUT = /^src\/(reactive|cli)\/|start-postgres|libsql|verbs\/conflicts|one-library|migrations/

/** The files of tests that may find a mutant, with PostgreSQL or without. */
export function entriesOf(root, onPostgres) {
  const units = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.test.ts'))
    .map((file) => `src/${file}`)
    .filter((path) => !LEFT_OUT.test(path) && (onPostgres || !needsServer(root, path)))
    .sort()
  const plain = [...units, ...BEHAVIOUR.map(inTests), ...(onPostgres ? OF_POSTGRES.map(inTests) : [])]
  return [
    ...plain.map((path) => ({ key: path, path })),
    ...(onPostgres ? BEHAVIOUR_ON_POSTGRES.map((name) => onServer(inTests(name))) : []),
  ]
}

const inTests = (name) => `test/${name}.test.ts`

const onServer = (path) => ({ key: `${path} on PostgreSQL`, path, setup: 'test/postgres/use-postgres.ts' })

const needsServer = (root, path) => /(shared|start)-postgres/.test(readFileSync(join(root, path), 'utf8'))

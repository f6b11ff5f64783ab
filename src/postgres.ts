/** The PostgreSQL store: one database that any number of processes and machines share. */
export { postgres } from './store/postgres/postgres.js'
export type { PostgresOptions } from './store/postgres/postgres.js'
export type { PgPool } from './store/postgres/connection/target.js'

/** The PostgreSQL store: one database, shared by any number of processes and machines. */
export { postgres } from './store/postgres/postgres.js'
export type { PostgresOptions } from './store/postgres/postgres.js'
export type { PgPool } from './store/postgres/connection/target.js'

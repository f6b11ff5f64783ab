import { Client } from 'pg'
import { openDatabase } from '../../src/store/postgres/connection/open.js'
import { targetOf } from '../../src/store/postgres/connection/target.js'
import { PostgresStore } from '../../src/store/postgres/postgres-store.js'
import { systemWorld } from '../../src/world/world.js'
import { ContractFixture } from '../contract/fixture.js'

export const START = 1_800_000_000_000
/** A verb that waits for a lock of the other is left waiting: the other continues, and then it does. */
const BLOCKED_MS = 40

/** Two processes on one database, with one clock. The second can act before any statement of the first. */
export class TwoStores {
  readonly clock = { now: START }
  readonly client: Client
  readonly #schema: string
  #first!: ContractFixture
  #second!: ContractFixture
  /** Called before each statement of the first. */
  #before: (() => Promise<void>) | undefined

  constructor(client: Client, schema: string) {
    this.client = client
    this.#schema = schema
  }

  static async open(url: string, schema: string): Promise<TwoStores> {
    const client = new Client(url)
    await client.connect()
    const both = new TwoStores(client, schema)
    const target = await targetOf(url, schema)
    const first = await both.#store({ ...target, makeClient: () => both.#watched(target.makeClient()) })
    both.#second = new ContractFixture({ store: await both.#store(target), clock: both.clock })
    both.#first = new ContractFixture({ store: first, clock: both.clock }, both.#second.ids)
    return both
  }

  get first(): ContractFixture {
    return this.#first
  }

  get second(): ContractFixture {
    return this.#second
  }

  async empty(): Promise<void> {
    // Read each time: the upkeep of days drops and creates partitions.
    const { rows } = await this.client.query<{ name: string }>(
      `select format('%I.%I', schemaname, tablename) as name from pg_tables
       where schemaname = $1 and tablename not in ('migrations', 'identity', 'lanes')`,
      [this.#schema],
    )
    await this.client.query(rows.map(({ name }) => `delete from ${name}`).join(';'))
  }

  /** Runs a verb of the first store; returns its answer and the number of its statements. */
  async count<T>(verb: () => Promise<T>): Promise<{ readonly answer: T; readonly statements: number }> {
    let statements = 0
    this.#before = async () => void (statements += 1)
    const answer = await verb().finally(() => (this.#before = undefined))
    return { answer, statements }
  }

  /** Runs `second` before the n-th statement of `first`, or after it when it has fewer. */
  async between<A, B>(first: () => Promise<A>, second: () => Promise<B>, n: number): Promise<[A, B]> {
    let left = n
    let other: Promise<B> | undefined
    this.#before = async () => {
      left -= 1
      if (left !== 0) return
      other = second()
      await Promise.race([other.catch(() => undefined), new Promise((next) => setTimeout(next, BLOCKED_MS))])
    }
    const answer = await first().finally(() => (this.#before = undefined))
    return [answer, await (other ?? second())]
  }

  async close(): Promise<void> {
    await this.#first.store.close()
    await this.#second.store.close()
    await this.client.end()
  }

  async #store(target: Awaited<ReturnType<typeof targetOf>>): Promise<PostgresStore> {
    const world = systemWorld()
    return new PostgresStore(await openDatabase(target, true, world), world, { now: () => this.clock.now })
  }

  #watched<C extends { query: (asked: never) => Promise<unknown> }>(client: C): C {
    const query = client.query.bind(client) as (asked: never) => Promise<unknown>
    client.query = async (asked: never) => {
      await this.#before?.()
      return query(asked)
    }
    return client
  }
}

import { Client } from 'pg'
import { openDatabase } from '../../src/store/postgres/connection/open.js'
import type { Opened } from '../../src/store/postgres/connection/open.js'
import type { PgClient } from '../../src/store/postgres/connection/client.js'
import { CALL_PACE } from '../../src/store/info.js'
import { targetOf } from '../../src/store/postgres/connection/target.js'
import { PostgresStore } from '../../src/store/postgres/postgres-store.js'
import { censusIn } from '../../src/store/postgres/verbs/census.js'
import type { SimulatedCensus } from '../../src/testing/checkers/checks.js'
import type { SimProcess } from '../../src/testing/simulation/sim-process.js'
import type { SimEngine, SimOpening, WholeStore } from '../../src/testing/simulation/sim-database.js'
import { rest } from '../../src/testing/simulation/virtual-time.js'
import { systemWorld } from '../../src/world/world.js'
import type { World } from '../../src/world/world.js'
import { emptyTables } from '../postgres/empty-tables.js'

/** Runs a statement of a process, or lets it fail. */
export type Intercept = <T>(asked: Asked, process: SimProcess, run: () => Promise<T>) => Promise<T>

/** A statement on its way: `name` is that of the queries, or its first word. */
export interface Asked {
  readonly client: PgClient
  readonly name: string
}

/** Without any answer for this long, a statement waits for a lock that is released in virtual time: time goes on. */
const STILL_MS = 1_000
/** Turns of the event loop without a statement in flight, after which nothing follows from the last answer. */
const CALM_TURNS = 2

/**
 * A schema of a real server as the database of simulated fleets. Its connections live in the real world; virtual time waits for
 * their answers. It is emptied and used again for the next fleet, because to make its tables takes longer than most histories.
 */
export class PostgresEngine implements SimEngine {
  readonly answersLater = true
  readonly heldUnconfirmedMs = CALL_PACE.postgres.heldUnconfirmedMs
  readonly #url: string
  readonly #schema: string
  readonly #client: Client
  /** Connections of apps, for transactions of their own. */
  readonly #idle: Client[] = []
  readonly #opened = new Map<string, Opened>()
  #census: SimulatedCensus | undefined
  /** Which transactions had ended when the census was read, as the server writes it. */
  #snapshot: string | null = null
  #inFlight = 0
  #onAnswer: (() => void) | undefined
  readonly #names = new Map<string, string>()
  #isOver: Promise<never> = new Promise<never>(() => undefined)
  #endHistory: (why: Error) => void = () => undefined
  #changes = 0
  /** A statement other than a beat was sent since the census was read. */
  #isDirty = true
  readonly #processes = new Map<string, SimProcess>()
  /** Every statement of a simulated process passes here. */
  intercept: Intercept | undefined

  private constructor(url: string, schema: string, client: Client) {
    this.#url = url
    this.#schema = schema
    this.#client = client
  }

  static async open(url: string, schema = 'simulated'): Promise<PostgresEngine> {
    const client = new Client(url)
    await client.connect()
    const engine = new PostgresEngine(url, schema, client)
    engine.#counted(client as unknown as PgClient, 'app')
    const { queries } = await engine.#open('observer')
    await client.query(`create table if not exists ${schema}.simulated_work (id text not null)`)
    await client.query(censusFunction(schema, queries.readCensus))
    return engine
  }

  /** Begins another history. Stores of the last one must not be used any more. */
  async empty(): Promise<this> {
    this.intercept = undefined
    this.#processes.clear()
    this.#endHistory(new Error('Connection terminated: its history has ended'))
    this.#isOver = new Promise((_, reject) => (this.#endHistory = reject))
    this.#isOver.catch(() => undefined) // No statement may be on its way.
    await this.#settled()
    await emptyTables(this.#client, [this.#schema])
    this.#isDirty = true
    this.#snapshot = null
    await this.refresh()
    return this
  }

  async close(): Promise<void> {
    for (const opened of this.#opened.values()) await opened.close()
    for (const client of [...this.#idle, this.#client]) await client.end()
  }

  async openStore({ process, now }: SimOpening): ReturnType<SimEngine['openStore']> {
    const opened = this.#opened.get(process.name) ?? (await this.#track(this.#open(process.name)))
    this.#processes.set(process.name, process)
    // Hints travel through the simulator, which can lose them and delay them.
    const silent: Opened = { ...opened, listen: () => undefined, notify: () => undefined }
    const store = new PostgresStore(silent, process.world, { now })
    return { store: withLatency(store, process.world), heartbeatStore: withLatency(store, process.heartbeatWorld) }
  }

  census(): SimulatedCensus {
    if (this.#census === undefined) throw new Error('the census was not read yet')
    return this.#census
  }

  countChanges(): number {
    return this.#changes
  }

  async refresh(): Promise<void> {
    if (!this.#isDirty && this.#census !== undefined) return
    this.#isDirty = false
    const { rows } = await this.#client.query<ReadCensus>({
      name: 'simulated_census',
      text: `select * from ${this.#schema}.simulated_census($1)`,
      values: [this.#snapshot],
    })
    const { snapshot, whole, works } = rows[0] as ReadCensus
    if (whole === null) return
    this.#snapshot = snapshot
    this.#census = { ...censusIn(whole), works: works ?? [] }
    this.#changes += 1
  }

  async rest(): Promise<void> {
    await rest()
    await this.#settled()
  }

  transact(): never {
    throw new Error('a transaction on PostgreSQL cannot end in the turn in which it began; use inTransaction')
  }

  async inTransaction<T>(rollsBack: boolean, work: (tx: unknown) => Promise<T>): Promise<T> {
    const client = this.#idle.pop() ?? (await this.#connect())
    try {
      await client.query('begin')
      const answer = await work(client)
      await client.query(rollsBack ? 'rollback' : 'commit')
      return answer
    } catch (error) {
      await client.query('rollback')
      throw error
    } finally {
      this.#idle.push(client)
    }
  }

  async writeWork(tx: unknown, id: string): Promise<void> {
    this.#isDirty = true
    await (tx as Client).query(`insert into ${this.#schema}.simulated_work (id) values ($1)`, [id])
  }

  async #connect(): Promise<Client> {
    const client = new Client(this.#url)
    this.#counted(client as unknown as PgClient, 'app')
    await client.connect()
    return client
  }

  async #open(process: string): Promise<Opened> {
    const target = await targetOf(this.#url, this.#schema)
    const counted = (client: PgClient): PgClient => this.#counted(client, process)
    const opened = await openDatabase(
      {
        ...target,
        makeClient: () => counted(target.makeClient()),
        makeHandlerClient: () => counted(target.makeHandlerClient()),
      },
      true,
      systemWorld(),
    )
    this.#opened.set(process, opened)
    for (const queries of [opened.queries, opened.days])
      for (const [query, text] of Object.entries(queries)) if (typeof text === 'string') this.#names.set(text, query)
    return opened
  }

  /** The same client; its statements are counted while they are in flight. */
  #counted(client: PgClient, name: string): PgClient {
    const [query, connect] = [client.query.bind(client), client.connect.bind(client)]
    client.connect = () => this.#track(connect())
    client.query = (...given) => {
      if (isWrite(given[0])) this.#isDirty = true
      const run = (): ReturnType<PgClient['query']> => this.#track(query(...given))
      const process = this.#processes.get(name)
      if (this.intercept === undefined || process === undefined) return run()
      const asked = { client, name: this.#nameOf(textOf(given[0])) }
      // An answer that is held back in virtual time would hold up the connection in the next history.
      return Promise.race([this.intercept(asked, process, run), this.#isOver])
    }
    return client
  }

  #nameOf(text: string): string {
    return this.#names.get(text) ?? (/\w+/.exec(text)?.[0] ?? 'statement').toLowerCase()
  }

  #track<T>(answer: Promise<T>): Promise<T> {
    this.#inFlight += 1
    const answered = (): void => {
      this.#inFlight -= 1
      this.#onAnswer?.()
    }
    answer.then(answered, answered)
    return answer
  }

  /** No statement is in flight and nothing follows from the last answer, or the statements in flight wait for a lock. */
  async #settled(): Promise<void> {
    for (let turns = 0; turns < CALM_TURNS; turns += 1) {
      if (this.#inFlight > 0) turns = -1
      if (this.#inFlight === 0) await rest()
      else if (!(await this.#nextAnswer())) return
    }
  }

  /** False when none came for so long. */
  #nextAnswer(): Promise<boolean> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => resolve(false), STILL_MS)
      this.#onAnswer = () => {
        clearTimeout(timer)
        resolve(true)
      }
    })
  }
}

interface ReadCensus {
  readonly snapshot: string
  /** Null: no transaction has written since. */
  readonly whole: string | null
  readonly works: SimulatedCensus['works'] | null
}

/**
 * Reads the census if a transaction has written since it was last read: most statements of an idle fleet could write and do not.
 * A transaction that writes gets a number, and the snapshot changes when it ends.
 */
function censusFunction(schema: string, readCensus: string): string {
  return `
    create or replace function ${schema}.simulated_census(seen text, out snapshot text, out whole text, out works json)
    language plpgsql as $$
    begin
      snapshot := pg_current_snapshot()::text;
      if snapshot is not distinct from seen then return; end if;
      select c.census into whole from (${readCensus}) c;
      select coalesce(json_agg(w), '[]') into works
      from (select s.id, count(*)::integer as times from ${schema}.simulated_work s group by s.id) w;
    end $$`
}

/** Not verbs, or answered within the call. */
const WITHOUT_LATENCY: ReadonlySet<string | symbol> = new Set(['onHint', 'readCensus', 'close', 'startHeartbeat'])

/** Each verb acts in a step of its own and is answered in a later one, so that the checkers see what it did. */
function withLatency(store: PostgresStore, world: World): WholeStore {
  const [groups, schedules] = [verbsOf(store.groups, world), verbsOf(store.schedules, world)]
  const verbs = verbsOf(store, world)
  const { transactions } = store
  const inTransactions: PostgresStore['transactions'] = new Proxy(transactions, {
    get(target, name) {
      if (name === 'transact') return Reflect.get(verbsOf(target, world), name) as unknown
      const value: unknown = Reflect.get(target, name, target)
      return typeof value === 'function' ? (value.bind(target) as unknown) : value
    },
  })
  const late: PostgresStore = new Proxy(store, {
    get(target, name) {
      if (name === 'jobs' || name === 'leases' || name === 'queues' || name === 'changes') return late
      if (name === 'groups') return groups
      if (name === 'schedules') return schedules
      if (name === 'transactions') return inTransactions
      if (!WITHOUT_LATENCY.has(name)) return Reflect.get(verbs, name) as unknown
      const value: unknown = Reflect.get(target, name, target)
      return typeof value === 'function' ? (value.bind(target) as unknown) : value
    },
  })
  return late
}

function verbsOf<T extends object>(inner: T, world: World): T {
  const turn = (): Promise<void> => new Promise((next) => world.timers.soon(next))
  return new Proxy(inner, {
    get(target, name) {
      const verb: unknown = Reflect.get(target, name, target)
      if (typeof verb !== 'function') return verb
      return async (...given: unknown[]) => {
        await turn()
        try {
          return (await (verb as (...args: unknown[]) => Promise<unknown>).apply(target, given)) as unknown
        } finally {
          await turn()
        }
      }
    },
  })
}

/** A statement that may change something that is promised; a beat does not. */
function isWrite(asked: string | { readonly text: string }): boolean {
  const text = textOf(asked)
  return /\b(insert|update|delete|commit|truncate|drop)\b/i.test(text) && !text.includes('set beat = beat + 1')
}

/** Handlers pass a text where the store passes an object. */
function textOf(asked: string | { readonly text: string }): string {
  return typeof asked === 'string' ? asked : asked.text
}

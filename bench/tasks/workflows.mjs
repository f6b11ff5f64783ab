import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { Watch } from '../clock.mjs'
import { chooseDriver, SAME_PRAGMAS, synchronousOf } from '../contestants/driver.mjs'

const PARTIES = { jobs: runMillrace, workflows: runMillrace, dbos: runDbos, answers: runAnswers }

/**
 * Plain jobs, or workflows of three steps that do nothing: from the first enqueue until the last end is written. What is measured is
 * what the engine does for each, and the number of ends is counted.
 */
export async function run(spec) {
  return PARTIES[spec.party](spec)
}

async function runMillrace(spec) {
  const { job, millrace, workflow, sqlite } = await import(pathToFileURL(join(spec.dist, 'index.js')).href)
  const store = spec.url ?? sqlite(spec.file)
  const act = async () => 1
  const plain = job('plain', act)
  const steps = workflow('steps', async (_, w) => {
    const a = await w.step('a', act)
    const b = await w.step('b', act)
    return (await w.step('c', act)) + a + b
  })
  let ended = 0
  let finish
  const last = new Promise((resolve) => (finish = resolve))
  const settle = (_job, { state }) => {
    if (state === 'done') ended += 1
    if (ended === spec.jobs) finish()
  }
  const mill = await millrace({
    store,
    jobs: [plain, steps],
    logger: false,
    concurrency: spec.concurrency,
    hooks: { settle },
  })
  const watch = new Watch(spec.serverPid)
  const payloads = Array.from({ length: spec.jobs }, (_, n) => n)
  await mill.enqueueMany(spec.party === 'jobs' ? plain : steps, payloads)
  await mill.start()
  await last
  await mill.stop()
  const took = watch.stop()
  await mill.close()
  return { ...took, ran: ended }
}

/** Started directly and not from its queue, which polls: so many in hand at a time. */
async function runDbos(spec) {
  const { DBOS } = await import('@dbos-inc/dbos-sdk')
  const act = async () => 1
  const steps = DBOS.registerWorkflow(
    async () => {
      const a = await DBOS.runStep(act, { name: 'a' })
      const b = await DBOS.runStep(act, { name: 'b' })
      return (await DBOS.runStep(act, { name: 'c' })) + a + b
    },
    { name: 'steps' },
  )
  const quiet = { info: ignore, debug: ignore, warn: ignore, error: console.error }
  DBOS.setConfig({ name: 'bench', systemDatabaseUrl: spec.url, systemDatabasePoolSize: 20, logger: quiet })
  await DBOS.launch()
  let started = 0
  let ran = 0
  const watch = new Watch(spec.serverPid)
  const lane = async () => {
    while (started < spec.jobs) {
      started += 1
      const handle = await DBOS.startWorkflow(steps)()
      if ((await handle.getResult()) === 3) ran += 1
    }
  }
  await Promise.all(Array.from({ length: spec.concurrency }, lane))
  const took = watch.stop()
  await DBOS.shutdown()
  return { ...took, ran }
}

/**
 * The answers of those workflows alone, by the bare driver into the same table: one commit for each answer of as many workflows as
 * are in hand. No engine that gives an answer after its commit can do with less.
 */
async function runAnswers(spec) {
  const { Database } = await chooseDriver(spec.dist)
  const database = new Database(spec.file)
  database.exec(SAME_PRAGMAS)
  database.exec(synchronousOf('power'))
  const insert = database.prepare(`
    insert into millrace_steps (seq, run, address, kind, no, since, attempt, called_at, answered_at, value)
    values (?, 0, ?, 'step', ?, ?, 1, ?, ?, '1')`)
  const [begin, commit] = [database.prepare('begin immediate'), database.prepare('commit')]
  const watch = new Watch()
  for (let from = 1; from <= spec.jobs; from += spec.concurrency)
    for (const [no, name] of ['a', 'b', 'c'].entries()) {
      begin.run()
      const now = Date.now()
      for (let seq = from; seq < from + spec.concurrency && seq <= spec.jobs; seq += 1)
        insert.run(seq, `/step:${name}#0`, no, no, now, now)
      commit.run()
    }
  const took = watch.stop()
  const { rows } = database.prepare('select count(*) as rows from millrace_steps').get()
  database.close()
  return { ...took, ran: rows / 3 }
}

function ignore() {}

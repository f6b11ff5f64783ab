import { join } from 'node:path'
import { breakGround } from './ground.mjs'
import { Child } from './child.mjs'
import { startDoomed } from './doomed-server.mjs'
import { seededRandom } from './random.mjs'
import { Verdict } from './verdict.mjs'

/** A minute of quarantine, shortened. */
const MINUTE_MS = 500
const CRASH_BUDGET = 3
/** The largest number of suspects: the slots of a process. */
const SLOTS = 10
/** The longest time of a round. */
const ROUND_MS = 120_000

/**
 * A job that kills its process, at a random position, with a random priority and after a random time, among others; the process
 * is started again each time. It must be parked within its bound of crashes, and no other job may be charged.
 */
export async function torture({ places, jobs, store, url, seed, minutes }) {
  const verdict = new Verdict()
  const ground = await breakGround('poison')
  const server = store === 'postgres' ? await startDoomed(url, ground) : undefined
  const random = seededRandom(seed)
  const end = performance.now() + minutes * 60_000
  const rounds = []
  try {
    while (rounds.length < places && performance.now() < end) {
      const number = rounds.length
      const where =
        server === undefined
          ? { file: join(ground.room(`round-${number}`), 'jobs.db') }
          : { url: `${server.url}?schema=poison_${number}` }
      const killAfterMs = random.pick([
        0,
        random.between(1, 400),
        random.between(550, 900),
        random.between(1_100, 1_900),
      ])
      const at = { poisonAt: random.between(0, jobs - 1), priority: random.between(-2, 2), killAfterMs }
      rounds.push(await playRound({ entry: ground.entry, minuteMs: MINUTE_MS, ...where, ...at }, jobs))
      console.log(tell(rounds.at(-1)))
    }
  } finally {
    await server?.stop()
    ground.clear()
  }
  judge(verdict, rounds, places, jobs)
  return verdict
}

async function playRound(config, jobs) {
  let over
  let crashes = 0
  const began = performance.now()
  const hear = ([word, ...numbers]) => {
    if (word === 'over') over = numbers.map(Number)
  }
  for (let first = true; performance.now() - began < ROUND_MS; first = false) {
    const child = new Child('poisoned', first ? { ...config, jobs } : config, { hear })
    const late = setTimeout(() => void child.kill(), ROUND_MS)
    const how = await child.ended
    clearTimeout(late)
    if (how === 0) break
    if (how !== 'SIGKILL') throw new Error(`a worker ended with ${how}: ${child.errors}`)
    crashes += 1
  }
  const tookMs = performance.now() - began
  const [innocent, charged, runsMax, own] = over ?? []
  return {
    ...config,
    crashes,
    bound: boundOf(config),
    isOver: over !== undefined,
    innocent,
    charged,
    runsMax,
    own,
    tookMs,
  }
}

/** 2 + crashBudget + log2(minutes until it crashes) + log2(suspects). */
function boundOf({ killAfterMs }) {
  return 2 + CRASH_BUDGET + Math.ceil(Math.log2(Math.max(1, killAfterMs / MINUTE_MS))) + Math.ceil(Math.log2(SLOTS))
}

function tell({ poisonAt, priority, killAfterMs, crashes, bound, runsMax, tookMs }) {
  return `place ${poisonAt}, priority ${priority}, kills after ${killAfterMs} ms: ${crashes} crashes (bound ${bound}), others ran at most ${runsMax} times more, ${(tookMs / 1000).toFixed(1)} s`
}

function judge(verdict, rounds, places, jobs) {
  if (rounds.length < places) verdict.void(`only ${rounds.length} of ${places} places were tried in the time given`)
  const [most, all] = [Math.max(...rounds.map((round) => round.crashes)), rounds.length]
  const told = (broken) => rounds.filter(broken).map(tell)
  verdict.none(
    `${all} poison jobs were parked, and all others done`,
    told((round) => !round.isOver || round.innocent !== jobs - 1),
  )
  verdict.none(
    'no poison job crashed more often than its bound',
    told((round) => round.crashes > round.bound),
    `at most ${most}`,
  )
  verdict.none(
    'no other job was charged',
    told((round) => round.charged > 0),
    `${all * (jobs - 1)} jobs`,
  )
}

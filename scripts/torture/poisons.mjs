import { join } from 'node:path'
import { breakGround } from './ground.mjs'
import { Child } from './child.mjs'
import { Verdict } from './verdict.mjs'

/** A minute of quarantine, and the grace of a handler that blocks the event loop, shortened. */
const MINUTE_MS = 500
const BLOCK_GRACE_MS = 500
/** The engine's own: crashes that park a job, and the slots of a worker. */
const CRASH_BUDGET = 3
const SLOTS = 10

/** How each kind of poison must end, in the event loop and in a process of its own. */
const DIED = { state: 'parked', why: /^its process died 3 times while it ran in quarantine$/ }
const ended = (how) => ({ state: 'parked', why: new RegExp(`ended 3 times, last with: ${how}$`) })
const KEPT_NOT = { state: 'done', why: /^the result is not kept: / }
const TIMED_OUT = { state: 'failed', why: /timeout|timed out|longer than/i }
const KINDS = {
  exit: { loop: DIED, process: ended('exit code 3') },
  abort: { loop: DIED, process: ended('signal SIGABRT') },
  segfault: { loop: DIED, process: ended('signal SIGSEGV') },
  heap: { loop: DIED, process: ended('out of memory') },
  floating: { loop: { state: 'failed', why: /^floating$/ }, process: { state: 'failed', why: /^floating$/ } },
  deep: { loop: KEPT_NOT, process: KEPT_NOT },
  // In a process both wait for the engine's own grace of 30 s, in the loop the second does.
  spin: { loop: DIED, process: TIMED_OUT, isSlow: true },
  deaf: { loop: TIMED_OUT, process: TIMED_OUT, isSlow: true },
}
/** Those that end the process of a worker whose event loop they run in. */
const DEADLY = Object.keys(KINDS).filter((kind) => KINDS[kind].loop === DIED)

/**
 * Eight kinds of poison beside good jobs, in the event loop of a worker that is started again each time, and in processes of their
 * own, where the worker must never end. A worker whose loop is blocked is killed once the engine has reported it, as a supervisor would.
 */
export async function torture({ executor, jobs, quick, minutes }) {
  const verdict = new Verdict()
  const ground = await breakGround('poisons')
  const kinds = Object.keys(KINDS).filter((kind) => quick === 0 || KINDS[kind].isSlow !== true)
  try {
    for (const each of executor === 'both' ? ['loop', 'process'] : [executor]) {
      const config = { entry: ground.entry, executor: each, kinds, minuteMs: MINUTE_MS, blockGraceMs: BLOCK_GRACE_MS }
      const file = join(ground.room(each), 'jobs.db')
      judge(verdict, each, jobs, kinds, await play({ ...config, file }, jobs, minutes * 60_000))
    }
  } finally {
    ground.clear()
  }
  return verdict
}

async function play(config, jobs, maxMs) {
  const began = performance.now()
  const crashes = []
  let over
  let isUp = false
  const hear = ([word, ...rest]) => {
    if (word === 'up') isUp = true
    if (word === 'over') over = JSON.parse(rest.join(' '))
  }
  const env = config.executor === 'loop' ? { NODE_OPTIONS: '--max-old-space-size=160' } : {}
  for (let first = true; over === undefined && performance.now() - began < maxMs; first = false) {
    isUp = false
    const child = new Child('poisons', first ? { ...config, jobs } : config, { hear, env })
    const watch = setInterval(() => {
      const isLate = performance.now() - began > maxMs
      if (isLate || child.errors.includes('its event loop was blocked')) void child.kill()
    }, 100)
    const how = await child.ended
    clearInterval(watch)
    if (how === 1 && !isUp) throw new Error(`a worker did not start: ${child.errors}`)
    if (how !== 0) crashes.push(String(how))
  }
  return { over, crashes, tookMs: performance.now() - began }
}

function judge(verdict, executor, jobs, kinds, { over, crashes, tookMs }) {
  const evidence = `${crashes.length} crashes (${[...new Set(crashes)].join(', ')}), ${(tookMs / 1000).toFixed(1)} s`
  const place = executor === 'loop' ? 'in the event loop' : 'in processes'
  verdict.expect(`${place}: every job ended or was parked in the time given`, over !== undefined, evidence)
  if (over === undefined) return
  const bound = executor === 'process' ? 0 : kinds.filter((kind) => DEADLY.includes(kind)).length * boundOfOne()
  verdict.expect(`${place}: at most ${bound} crashes of the worker`, crashes.length <= bound, `${crashes.length}`)
  const wrong = over.poisons.filter(({ kind, state, why }) => {
    const wanted = KINDS[kind][executor]
    return state !== wanted.state || !wanted.why.test(why)
  })
  const shown = ({ kind, state, why, crashes: own, exits }) =>
    `${kind}: ${state}, ${own} crashes, ${why} (${exits.join(', ')})`
  verdict.none(`${place}: each poison ended as it must`, wrong.map(shown), `${over.poisons.length} kinds`)
  verdict.expect(`${place}: all good jobs are done`, over.good === jobs, `${over.good} of ${jobs}`)
  verdict.expect(`${place}: no good job was charged`, over.charged === 0, `${over.charged}`)
  for (const each of over.poisons) console.log(`  ${executor} ${shown(each)}`)
}

/** 2 + crashBudget + log2(minutes until it crashes), which are less than one, + log2(suspects). */
function boundOfOne() {
  return 2 + CRASH_BUDGET + Math.ceil(Math.log2(SLOTS))
}

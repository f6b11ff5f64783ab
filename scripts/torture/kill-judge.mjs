import { formatCensus, takeCensus } from './census.mjs'
import { countStarts } from './diary.mjs'
import { judgeErrands } from './errands-judge.mjs'
import { forgottenResults } from './ledger.mjs'

/** A kill of an idle process proves nothing: in at least this share of kills a job must have been running. */
const HIT_SHARE_MIN = 0.8
/** The engine's default: this many crashes in quarantine park a job. */
const CRASH_BUDGET = 3

/** The census, the figures, and which promises held. */
export async function judgeKills(verdict, { kills, drainedInMs, drainMs, crew, eye, ledger }) {
  const diaries = crew.diaries()
  const starts = countStarts(diaries)
  const places = await eye.places()
  const census = takeCensus({ acknowledged: ledger.acknowledged, places, starts })
  const runs = countRuns(starts, diaries, kills)
  const share = kills.hits / kills.done
  console.log(formatCensus(census))
  console.log(figures(kills, runs, ledger, share))

  const [lost, left, parked] = [census.of('LOST'), census.of('still waiting or running'), census.of('parked')]
  const drained = drainedInMs === undefined ? `${left.length} left` : `in ${(drainedInMs / 1000).toFixed(1)} s`
  const inTime = kills.done === kills.wanted
  verdict.expect('every kill was made within the time', inTime, `${kills.done} of ${kills.wanted}`)
  verdict.none('0 acknowledged jobs are lost', lost, `${lost.length} of ${ledger.acknowledged.size}`)
  verdict.none('no job is in two tables', census.of('IN TWO PLACES'))
  verdict.none('every returned result is on record', forgottenResults(ledger, places), `${ledger.results.size} given`)
  verdict.expect(`0 are stuck: all drained within ${drainMs / 1000} s`, drainedInMs !== undefined, drained)
  verdict.none('none failed', placesOf(places, 'failed'))
  verdict.none('a job is parked only after 3 kills', parkedEarly(parked, kills), `${parked.length} parked`)
  verdict.expect(
    'extra runs are at most the jobs in flight, and those that failed on purpose',
    runs.extra <= runs.excused,
    `${runs.extra} of ${runs.excused}`,
  )
  verdict.none('no job ran again without a cause of its own', runs.unexcused)
  verdict.none(
    'no job was settled twice',
    (await eye.settledTwice()).map(({ id, times }) => `${id} ${times} times`),
  )
  verdict.none('no job is done without a run', doneUnseen(places, starts))
  verdict.none('no error reached a caller', crew.troubles)
  await judgeErrands(verdict, { diaries, ledger, places, eye })
  const integrity = await eye.integrity()
  verdict.expect('the store is sound', integrity === 'ok', integrity.slice(0, 200))
  if (share < HIT_SHARE_MIN) verdict.void(`only ${percent(share)} of the kills hit running jobs, and 80 % are needed`)
}

/**
 * Runs beyond the first, and what excuses them: the job was in flight at a kill, or its live worker was declared dead
 * because the machine stalled, or it failed on purpose. Nothing else excuses them, as no handler here throws otherwise.
 */
function countRuns(starts, diaries, kills) {
  const excuses = new Map(kills.excuses)
  const lost = diaries.flatMap((diary) => diary.lost)
  const failed = diaries.flatMap((diary) => diary.failed)
  for (const id of [...lost, ...failed]) excuses.set(id, (excuses.get(id) ?? 0) + 1)
  return {
    lost: lost.length,
    extra: [...starts.values()].reduce((sum, times) => sum + times - 1, 0),
    excused: kills.inFlight + lost.length + failed.length,
    unexcused: [...starts]
      .filter(([id, times]) => times > 1 + (excuses.get(id) ?? 0))
      .map(([id, times]) => `${id} ran ${times} times, and has a cause for ${excuses.get(id) ?? 0} more`),
  }
}

function parkedEarly(parked, kills) {
  return parked.filter((id) => (kills.excuses.get(id) ?? 0) < CRASH_BUDGET)
}

function placesOf(places, state) {
  return places.filter(({ history }) => history === state).map(({ id }) => id)
}

function doneUnseen(places, starts) {
  return places.filter(({ id, history }) => history === 'done' && !starts.has(id)).map(({ id }) => id)
}

function figures(kills, runs, ledger, share) {
  return [
    `${kills.done} kills (${((kills.done / kills.tookMs) * 1000).toFixed(1)} a second)`,
    `${kills.hits} hit running jobs (${percent(share)})`,
    `${kills.running} handlers running and ${kills.inFlight} jobs in flight at the kills`,
    `${runs.extra} extra runs`,
    `${ledger.acknowledged.size} acknowledged, ${ledger.results.size} results given`,
    `${runs.lost} runs whose live worker lost its lease`,
  ].join(', ')
}

function percent(share) {
  return `${(share * 100).toFixed(1)} %`
}

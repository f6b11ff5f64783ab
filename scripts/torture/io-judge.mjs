import { formatCensus, takeCensus } from './census.mjs'
import { countStarts, readDiary } from './diary.mjs'
import { ledgerOf } from './io-run.mjs'
import { readLedger } from './ledger.mjs'
import { look } from './look.mjs'

/** A run whose fault came too late proves nothing: at least this share must have been hit. */
const STRUCK_SHARE_MIN = 0.8

/** The census over all files, the figures, and which promises held. */
export function judgeFaults(verdict, seen, options) {
  const { runs } = seen
  const census = censusOf(seen)
  const struck = runs.filter(({ run }) => run.faults.length > 0)
  console.log(formatCensus(census))
  tell(runs, struck)

  const broken = (find) => runs.flatMap((each) => find(each).map((text) => `${each.name}: ${text}`))
  verdict.expect('every fault was made in time', runs.length === options.faults, `${runs.length} of ${options.faults}`)
  verdict.none(
    'the process does not exit',
    broken(({ run }) => exits(run)),
  )
  verdict.none(
    'every error a caller sees is typed',
    broken(({ run }) => run.refused.filter(isUntyped)),
  )
  verdict.none(
    'there is no unhandled rejection',
    broken(({ run }) => run.loose),
  )
  verdict.none(
    'what was acknowledged ends in the same process',
    broken(({ run }) => run.stuck),
  )
  verdict.none(
    'the file is sound',
    broken(({ integrity }) => (integrity === 'ok' ? [] : [integrity.slice(0, 200)])),
  )
  verdict.none('0 acknowledged jobs are lost', [...broken(({ lost }) => lost), ...census.of('LOST')])
  verdict.none(
    'every returned result is on record',
    broken(({ forgotten }) => forgotten),
  )
  verdict.none(
    'a clean restart opens the file',
    broken(({ restart }) => [...exits(restart), ...restart.refused]),
  )
  verdict.none(
    'and finishes all jobs',
    broken(({ left }) => (left.length === 0 ? [] : [`${left.length} left`])),
  )
  verdict.none('no job is in two tables', census.of('IN TWO PLACES'))
  if (struck.length < runs.length * STRUCK_SHARE_MIN)
    verdict.void(`only ${struck.length} of ${runs.length} runs were struck by their fault`)
}

function censusOf(seen) {
  return takeCensus({
    acknowledged: new Set(seen.files.flatMap((file) => [...readLedger(ledgerOf(file)).acknowledged])),
    places: seen.files.flatMap((file) => look(file).places),
    starts: countStarts(seen.diaries.map((diary) => readDiary(diary))),
  })
}

function tell(runs, struck) {
  const silent = struck.filter(({ run }) => run.refused.length + run.told.length === 0)
  const codes = runs.flatMap(({ run }) => run.refused.map((text) => text.split(' ').slice(0, 2).join(' ')))
  console.log(`${struck.length} of ${runs.length} runs were struck, first at: ${tally(struck.map(firstFault))}`)
  console.log(`what callers got: ${tally(codes)}`)
  console.log(`struck, and nobody was told: ${silent.length} (${tally(silent.map(firstFault))})`)
}

function exits(run) {
  return run.how === 0 && run.ended ? [] : [`ended with ${run.how} ${run.gaveUp.join()} ${run.errors.slice(-300)}`]
}

function isUntyped(text) {
  return text.includes('UNTYPED')
}

function firstFault({ run }) {
  return run.faults[0]
}

function tally(items) {
  const counts = new Map()
  for (const item of items) counts.set(item, (counts.get(item) ?? 0) + 1)
  const sorted = [...counts].sort((a, b) => b[1] - a[1])
  return sorted.map(([item, times]) => `${item} ×${times}`).join(', ') || 'nothing'
}

/**
 * A process that does not run for this long, between the check whether a job may begin and its begin, would
 * count as a fault; the promises are about seconds here.
 */
const STALL_NS = 500_000_000n

/** Judges cancels, pauses, unique jobs and transactions. */
export async function judgeErrands(verdict, { diaries, ledger, places, eye }) {
  const begins = diaries.flatMap((diary) => diary.begins)
  const { works, orders, soles } = await eye.counts()
  const spans = pausedSpans(ledger)
  const { cancelled, undone } = ledger
  verdict.none(
    'a job that was cancelled never begins again',
    begunAfterCancel(begins, ledger),
    `${cancelled.size} cancels`,
  )
  verdict.none('a job that was cancelled is cancelled or done', wronglyEnded(places, ledger))
  verdict.none('only jobs with a cancel or a replacement are cancelled', cancelledUnasked(places, ledger))
  verdict.none('nothing of a paused queue begins', begunWhilePaused(begins, spans), `${spans.length} pauses`)
  verdict.none('a job and the work of its transaction are one', (await eye.workAstray()).map(show), `${works} works`)
  verdict.none('an order and its job are one', (await eye.ordersAstray()).map(show), `${orders} orders`)
  verdict.none('what was rolled back is not there', stillThere(places, ledger), `${undone.size} rolled back`)
  verdict.none('no job is written beside one that is the same', (await eye.twice()).map(show), `${soles} unique jobs`)
  if ([cancelled.size, spans.length, works, orders, undone.size, soles].includes(0))
    verdict.void('one of the errands never occurred; see the counts above')
}

function begunAfterCancel(begins, { cancelled }) {
  return begins
    .filter(({ id, at }) => cancelled.has(id) && at > cancelled.get(id) + STALL_NS)
    .map(({ id, at }) => `${id} began ${(at - cancelled.get(id)) / 1_000_000n} ms after its cancel resolved`)
}

function wronglyEnded(places, { cancelled }) {
  const right = new Set(['cancelled', 'done'])
  return places
    .filter(({ id, history }) => cancelled.has(id) && !right.has(history))
    .map(({ id, live, history }) => `${id} is ${history ?? live}`)
}

function cancelledUnasked(places, { calledOff }) {
  const isReplaced = ({ reason }) => reason?.startsWith('replaced by ') === true
  return places
    .filter((place) => place.history === 'cancelled' && !calledOff.has(place.id) && !isReplaced(place))
    .map(({ id, reason }) => `${id}: ${reason}`)
}

/** From the moment each pause resolved to the call that resumes the queue. Only its own process resumes it. */
function pausedSpans({ pauses, resumes }) {
  return pauses.map(({ queue, at }) => {
    const later = resumes.filter((resume) => resume.queue === queue && resume.at > at).map((resume) => resume.at)
    return { queue, from: at, to: later.reduce((first, each) => (each < first ? each : first), later[0] ?? at) }
  })
}

function begunWhilePaused(begins, spans) {
  return begins.flatMap(({ id, at, queue }) =>
    spans
      .filter((span) => span.queue === queue && at > span.from + STALL_NS && at < span.to)
      .map((span) => `${id} began ${(at - span.from) / 1_000_000n} ms after ${queue} was paused`),
  )
}

function stillThere(places, { undone }) {
  return places.filter(({ id }) => undone.has(id)).map(({ id }) => id)
}

function show(row) {
  return Object.values(row).join(' ')
}

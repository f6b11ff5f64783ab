import type { WorkerRecord } from '../../../client/read/lists.js'
import { inWords } from '../../../job/why/words.js'
import type { Sentence, WorkerRow, WorkersFields } from '../../protocol/rows.js'
import type { MakeView, Parts } from '../parts.js'
import { slotsOf } from './overview.js'
import { added, asPage, countsOf, exactly, healthOf, ms, queuesOf } from './reads.js'

const PAGE = 200
const ABSENT = { donePerMinute: 'What each worker ends per minute is not in this version.' }

/** The fleet, by host and then by start. */
export async function readWorkers(parts: Parts, cursor?: string): Promise<MakeView> {
  const [page, queues, report] = await Promise.all([
    asPage(() => parts.mill.workers({ limit: PAGE, cursor })),
    queuesOf(parts),
    healthOf(parts),
  ])
  const rows = page.rows.toSorted((a, b) => compare(a.host, b.host) || a.startedAt.getTime() - b.startedAt.getTime())
  const counts = countsOf(queues)
  const { busy, all } = slotsOf(page.rows)
  const alive = page.rows.filter(({ state }) => state === 'alive').length
  const fields: WorkersFields = {
    text: sentence(page.rows, { alive, busy, slots: all }, parts.world.clock.now()),
    alive,
    slots: all,
    busy,
    waiting: added([counts.ready ?? exactly(0), counts.retrying ?? exactly(0)]),
    unknownNames: report.findings
      .filter(({ kind }) => kind === 'unknown-name')
      .map(({ text }) => ({ job: unquoted(text), text })),
  }
  return () => ({
    fields,
    rows: rows.map((worker) => [worker.id, workerRow(worker)]),
    cursor: page.cursor ?? null,
    absent: ABSENT,
  })
}

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

/** The finding names the job in quotes. */
function unquoted(text: string): string {
  const found = /"(?:[^"\\]|\\.)*"/.exec(text)?.[0]
  return found === undefined ? '' : (JSON.parse(found) as string)
}

function sentence(
  workers: readonly WorkerRecord[],
  { alive, busy, slots }: { readonly alive: number; readonly busy: number; readonly slots: number | null },
  now: number,
): Sentence {
  if (workers.length === 0) return ['No workers are running. Call `await mill.start()` in any process.']
  const of = slots === null ? `${busy} busy` : `${slots} slots, ${busy} busy`
  const missing = workers.filter(({ state }) => state !== 'alive')
  return [
    `${alive} ${alive === 1 ? 'worker' : 'workers'}, ${of}.`,
    ...missing.map(({ id, host, beatAt, state }) => {
      const silent = inWords(Math.max(0, now - beatAt.getTime()))
      const what =
        state === 'dead' ? 'was declared dead; other workers have its jobs' : `has sent no heartbeat for ${silent}`
      return { text: ` Worker ${id.slice(0, 8)} on ${host} ${what}.`, to: '#/workers' }
    }),
  ]
}

export function workerRow(worker: WorkerRecord): WorkerRow {
  const { startedAt, beatAt, diedAt, version, slots, names, running, blockedBy, memoryBytes, loopDelayMs, ...rest } =
    worker
  return {
    ...rest,
    version: version ?? null,
    startedAt: startedAt.getTime(),
    beatAt: beatAt.getTime(),
    diedAt: ms(diedAt),
    slots: slots ?? null,
    busy: running.reduce((sum, { count }) => sum + count, 0),
    names: names ?? null,
    running: running.map((each) => ({ ...each, since: each.since.getTime() })),
    blockedBy: blockedBy ?? null,
    memoryBytes: memoryBytes ?? null,
    loopDelayMs: loopDelayMs ?? null,
    donePerMinute: null,
  }
}

import type { QueueFields } from '../../protocol/rows.js'
import { SPANS } from '../../protocol/topics.js'
import type { Span } from '../../protocol/topics.js'
import { ViewGone } from '../parts.js'
import type { MakeView, Parts } from '../parts.js'
import { failureRows } from './failures.js'
import { ABSENT, queueRows } from './queues.js'
import { deploysOf, workersOf } from './reads.js'
import { seriesOf } from './series.js'
import { workerRow } from './workers.js'

const SHOWN = 5
const HISTORY_MAX = 50
const VERBS: Readonly<Record<string, string>> = {
  pause: 'paused',
  pauseUntil: 'paused until a time',
  resume: 'resumed',
}

/** One queue: its charts, the jobs that run now, its pauses, its workers. */
export async function readQueue(
  parts: Parts,
  { name, span }: { readonly name: string; readonly span: Span },
): Promise<MakeView> {
  const from = parts.world.clock.now() - SPANS[span]
  const [queues, series, deploys, failing, { rows: workers }, audit] = await Promise.all([
    queueRows(parts),
    seriesOf(parts, span, name),
    deploysOf(parts, from),
    failureRows(parts, from, SHOWN, name),
    workersOf(parts),
    parts.mill.audit({ target: `queue ${name}`, since: new Date(from), limit: HISTORY_MAX }),
  ])
  const queue = queues.find((each) => each.name === name)
  if (queue === undefined) throw new ViewGone(`No queue ${name} has had a job. Queues appear with their first job.`)
  const serving = workers.filter(({ running }) => running.some((each) => each.queue === name))
  const byJob = new Map<string, { running: number; workers: number }>()
  for (const { job, count } of serving.flatMap(({ running }) => running.filter((each) => each.queue === name))) {
    const sum = byJob.get(job) ?? { running: 0, workers: 0 }
    byJob.set(job, { running: sum.running + count, workers: sum.workers + 1 })
  }
  const fields: Omit<QueueFields, 'failing'> = {
    queue,
    span,
    series,
    deploys,
    byJob: [...byJob].map(([job, sums]) => ({ job, ...sums })),
    limitKeys: null,
    history: audit.rows
      .map(({ at, actor, verb }) => ({ at: at.getTime(), text: `${actor} ${VERBS[verb] ?? verb} it` }))
      .toReversed(),
  }
  return (show) => ({
    fields: { ...fields, failing: failing.rows(show) } satisfies QueueFields,
    rows: serving.map((worker) => [worker.id, workerRow(worker)]),
    absent: { ...ABSENT, limitKeys: 'The waiting jobs of each limit key are not in this version.' },
  })
}

import type { FindingRow, HealthFields } from '../../protocol/rows.js'
import type { MakeView, Parts } from '../parts.js'
import { countsOf, exactly, healthOf, ms, queuesOf, workersOf } from './reads.js'
import { levelOf, linkOf, verdictOf } from './verdict.js'

const MIB = 1_048_576

/** The verdict, the faults with their mends, and what is well. */
export async function readHealth(parts: Parts): Promise<MakeView> {
  const [report, verdict, queues, { rows: workers }] = await Promise.all([
    healthOf(parts),
    verdictOf(parts),
    queuesOf(parts),
    workersOf(parts),
  ])
  const inState = (state: string): number => workers.filter((worker) => worker.state === state).length
  const [alive, silent, dead] = [inState('alive'), inState('silent'), inState('dead')]
  const { engine, name, latencyMs } = report.store
  const loops = workers.flatMap(({ loopDelayMs, state }) =>
    state === 'alive' && loopDelayMs !== undefined ? [loopDelayMs] : [],
  )
  const memory = workers.reduce((sum, { memoryBytes, state }) => sum + (state === 'alive' ? (memoryBytes ?? 0) : 0), 0)
  return (show) => {
    const fields: HealthFields = {
      verdict: {
        ...verdict,
        text: verdict.text.map((each) =>
          typeof each === 'string' ? show.text(each) : { ...each, text: show.text(each.text) },
        ),
      },
      healthy: report.healthy,
      checkedAt: report.checkedAt.getTime(),
      store: { engine, name: shortName(name), latencyMs: latencyMs ?? null },
      workers: { alive, silent, dead },
      nav: {
        failed: countsOf(queues).failed ?? exactly(0),
        workersMissing: silent + dead,
        findings: report.findings.length,
      },
      good: [
        ...(latencyMs === undefined
          ? []
          : [{ name: 'store', text: `${engine}, ${Math.round(latencyMs * 10) / 10} ms` }]),
        ...(alive === 0 ? [] : [{ name: 'workers', text: `${alive} alive` }]),
        ...(loops.length === 0 ? [] : [{ name: 'loop', text: `p99 ${Math.round(Math.max(...loops))} ms` }]),
        ...(memory === 0 ? [] : [{ name: 'memory', text: `${Math.round(memory / MIB)} MB in all workers` }]),
      ],
      build: parts.assets.build,
    }
    const rows = report.findings.map((finding, i): readonly [string, FindingRow] => {
      const { kind, text, since, effect, mend } = finding
      return [
        `${kind}-${i}`,
        { kind, level: levelOf(kind), text: show.text(text), since: ms(since), effect, mend, link: linkOf(finding) },
      ]
    })
    return { fields, rows }
  }
}

/** The file or the database, without folders, host and user: the page is read by people who need neither. */
export function shortName(name: string): string {
  const withoutQuery = name.replace(/[?#].*$/, '')
  return withoutQuery.split(/[\\/]/).findLast((part) => part !== '') ?? ''
}

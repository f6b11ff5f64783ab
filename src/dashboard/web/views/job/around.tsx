import type { JobFields } from '../../../protocol.js'
import { Graph } from '../../parts/graph.js'
import { Spark } from '../../parts/spark.js'
import { latelyText } from './computed.js'
import { usePart } from './use-part.js'

/** The jobs before and after it, if there are any. */
export function Around({ job }: { job: JobFields }) {
  const { answer } = usePart(job.id, 'graph', job.state)
  if (answer === undefined || answer.nodes.length < 2) return null
  return (
    <section class="card">
      <div class="card-head">
        <h2>Before and after</h2>
      </div>
      <Graph answer={answer} id={job.id} />
    </section>
  )
}

/** How long the same job took lately. */
export function Lately({ job }: { job: JobFields }) {
  const { answer } = usePart(job.id, 'lately', job.state)
  if (answer === undefined || answer.took.length === 0) return null
  return (
    <section class="card lately">
      <h2>Same job lately</h2>
      <Spark values={answer.took.map(({ ms }) => ms)} kind="done" name={`Run time of ${job.job} in milliseconds`} />
      <span class="quiet">{latelyText(answer.p50, job.tookMs)}</span>
    </section>
  )
}

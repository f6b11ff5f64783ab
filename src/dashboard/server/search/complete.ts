import type { CompleteAnswer, CompleteRequest } from '../../protocol/calls.js'
import { completeSearch } from '../../search.js'
import type { KnownValues } from '../../search.js'
import type { Parts } from '../parts.js'
import type { Show } from '../show/redact.js'
import { queuesOf, workersOf } from '../views/reads.js'

/** The newest jobs whose labels and paths are known to completion; they are read once a minute. */
const SAMPLE = 1_000
const SAMPLE_MS = 60_000
const VALUES_MAX = 200
const DEPTH_MAX = 4

/** What could follow in a search, from what is known without counting. */
export async function complete(parts: Parts, { text, caret }: CompleteRequest, show: Show): Promise<CompleteAnswer> {
  const known = await parts.shared.read(`known ${show.role}`, SAMPLE_MS, () => knownValues(parts, show))
  const { from, to, options } = completeSearch(text, Math.min(caret, text.length), known)
  return { from, to, options: options.map((option) => ({ ...option, count: null })) }
}

async function knownValues(parts: Parts, show: Show): Promise<KnownValues> {
  const [queues, workers, schedules, sample] = await Promise.all([
    queuesOf(parts),
    workersOf(parts),
    parts.mill.schedules.list({ limit: VALUES_MAX }),
    parts.mill.findPage({}, { limit: SAMPLE }),
  ])
  const paths: Record<'payload' | 'result' | 'meta' | 'captured', Set<string>> = {
    payload: new Set(),
    result: new Set(),
    meta: new Set(),
    captured: new Set(),
  }
  const labels = new Set<string>()
  for (const record of sample.rows) {
    for (const label of record.labels) labels.add(label)
    for (const name of Object.keys(paths) as (keyof typeof paths)[])
      if (name === 'captured' || !parts.isSealed(record.job))
        addPaths(paths[name], show.plain(record[name], name), '', 0)
  }
  const first = (of: Iterable<string>): readonly string[] => [...of].slice(0, VALUES_MAX).toSorted()
  return {
    values: {
      queue: queues.map(({ name }) => name),
      job: parts.mill.jobs().map(({ name }) => name),
      label: first(labels),
      schedule: schedules.map(({ id }) => id),
      worker: workers.rows.map(({ id }) => id),
      host: first(new Set(workers.rows.map(({ host }) => host))),
      version: first(new Set(workers.rows.flatMap(({ version }) => version ?? []))),
    },
    paths: {
      payload: first(paths.payload),
      result: first(paths.result),
      meta: first(paths.meta),
      captured: first(paths.captured),
    },
  }
}

function addPaths(paths: Set<string>, value: unknown, path: string, depth: number): void {
  if (typeof value !== 'object' || value === null || depth >= DEPTH_MAX || paths.size >= VALUES_MAX) return
  if (Array.isArray(value)) return addPaths(paths, value[0], `${path}[0]`, depth + 1)
  if (Object.getPrototypeOf(value) !== Object.prototype) return
  for (const [name, each] of Object.entries(value)) {
    const step = /^[\p{L}\p{N}_$-]+$/u.test(name) ? name : `"${name.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`
    const at = path === '' ? step : `${path}.${step}`
    paths.add(at)
    addPaths(paths, each, at, depth + 1)
  }
}

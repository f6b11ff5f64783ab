import type { JobRecord } from '../../../../job/record.js'
import { REDACTED } from '../../../../job/secrets/redact.js'
import type { DifferenceShown } from '../../../protocol/rows.js'

/** Jobs of each side that are compared, at most and at least. */
export const COMPARED_MAX = 500
export const COMPARED_MIN = 20
/** Of fewer points a difference may be chance. */
const POINTS_MIN = 30
/** What has more values than this, such as an id, tells the jobs apart and not the failures. */
const VALUES_MAX = 50
const SHOWN_MAX = 10
const PATHS_MAX = 100
const DEPTH_MAX = 6
const TEXT_MAX = 100

/** What a job is compared by: values by name. A name may have several values, such as labels. */
export type Facts = ReadonlyMap<string, readonly string[]>

/** Values that are more frequent among the jobs that failed, the biggest difference first; null for too few jobs of a side. */
export function differencesOf(failed: readonly Facts[], done: readonly Facts[]): readonly DifferenceShown[] | null {
  if (failed.length < COMPARED_MIN || done.length < COMPARED_MIN) return null
  const [ofFailed, ofDone] = [tally(failed), tally(done)]
  const found: DifferenceShown[] = []
  for (const [what, counts] of ofFailed) {
    const others = ofDone.get(what) ?? new Map<string, number>()
    const values = new Set([...counts.keys(), ...others.keys()])
    if (values.size > VALUES_MAX || hasHidden(values)) continue
    for (const [value, n] of counts) {
      const failedPercent = percent(n, failed.length)
      const donePercent = percent(others.get(value) ?? 0, done.length)
      if (failedPercent - donePercent >= POINTS_MIN) found.push({ what, value, failedPercent, donePercent })
    }
  }
  const gap = ({ failedPercent, donePercent }: DifferenceShown): number => failedPercent - donePercent
  return found.toSorted((a, b) => gap(b) - gap(a)).slice(0, SHOWN_MAX)
}

type Tally = Map<string, Map<string, number>>

function tally(jobs: readonly Facts[]): Tally {
  const counts: Tally = new Map()
  for (const facts of jobs)
    for (const [what, values] of facts) {
      const of = counts.get(what) ?? new Map<string, number>()
      counts.set(what, of)
      for (const value of new Set(values)) of.set(value, (of.get(value) ?? 0) + 1)
    }
  return counts
}

/** A path that is hidden in one job is not compared at all: the share of hidden values would say something about them. */
function hasHidden(values: ReadonlySet<string>): boolean {
  return [...values].some((value) => value.includes(REDACTED))
}

const percent = (n: number, of: number): number => Math.round((100 * n) / of)

/** The worker of a job's last attempt. */
export interface RanOn {
  readonly host: string
  readonly version: string | undefined
}

/** The facts of a job. `payload`: what the user may see of it; undefined for an encrypted one. */
export function factsOf(
  { queue, labels, attempt, attempts, worker, startedAt }: JobRecord,
  payload: unknown,
  workers: ReadonlyMap<string, RanOn>,
): Facts {
  const last = worker ?? attempts.at(-1)?.worker
  const ranOn = last === undefined ? undefined : workers.get(last)
  const begun = startedAt ?? attempts.at(-1)?.startedAt
  const facts = new Map<string, readonly string[]>([
    ['queue', [queue]],
    ['worker', present(last)],
    ['host', present(ranOn?.host)],
    ['version', present(ranOn?.version)],
    ['label', labels],
    ['attempt', [String(attempt)]],
    ['hour (UTC)', present(begun === undefined ? undefined : `${begun.toISOString().slice(11, 13)}:00`)],
  ])
  addPaths(facts, payload, 'payload', 0)
  return facts
}

const present = (value: string | undefined): readonly string[] => (value === undefined ? [] : [value])

/** Plain values by their path. Lists are left out: their places have no meaning of their own. */
function addPaths(facts: Map<string, readonly string[]>, value: unknown, path: string, depth: number): void {
  if (facts.size >= PATHS_MAX) return
  if (value === null || typeof value === 'boolean' || typeof value === 'number') facts.set(path, [String(value)])
  else if (typeof value === 'string') facts.set(path, [value.slice(0, TEXT_MAX)])
  else if (isPlain(value) && depth < DEPTH_MAX)
    for (const [name, inner] of Object.entries(value)) addPaths(facts, inner, `${path}.${name}`, depth + 1)
}

function isPlain(value: unknown): value is Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}

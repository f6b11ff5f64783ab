import type { JobRecord } from '../../job/record.js'
import type { GraphAnswer, GraphNode, JobPart, JobPartAnswer, LatelyAnswer } from '../protocol/jobs.js'
import type { ShownValue } from '../protocol/shown.js'
import { Refusal } from './parts.js'
import type { Parts } from './parts.js'
import { SHOWN_ALL_BYTES, SHOWN_BYTES } from './show/redact.js'
import type { Show } from './show/redact.js'

export const JOB_PARTS: readonly JobPart[] = [
  'payload',
  'result',
  'meta',
  'captured',
  'log',
  'graph',
  'lately',
  'json',
  'test',
]

const GENERATIONS = 2
const NODES_MAX = 40
const LATELY = 30

/** A part of a job that its page loads on demand. */
export async function readJobPart(
  parts: Parts,
  {
    id,
    part,
    isAll,
    show,
  }: { readonly id: string; readonly part: JobPart; readonly isAll: boolean; readonly show: Show },
): Promise<JobPartAnswer[JobPart]> {
  const record = await parts.mill.get(id)
  if (record === undefined) throw new Refusal('not-found', 'This job was pruned or never existed.')
  const isSealed = parts.isSealed(record.job)
  const bytes = isAll ? SHOWN_ALL_BYTES : SHOWN_BYTES
  switch (part) {
    case 'payload':
    case 'result':
    case 'meta':
      return isSealed ? SEALED : show.value(record[part], part, bytes)
    case 'captured':
      return show.value(record.captured, 'captured', bytes)
    case 'log':
      return logOf(record, show, isSealed)
    case 'graph':
      return graphOf(parts, record, show)
    case 'lately':
      return latelyOf(parts, record)
    case 'json':
    case 'test':
      // A viewer reads what is on the page; copies of whole records are for those who act.
      if (show.role === 'viewer')
        throw new Refusal('not-allowed', 'Viewers cannot copy a job.', { hint: 'Ask for the operator role.' })
      return { text: part === 'json' ? jsonOf(record, show, isSealed) : testOf(record, show, isSealed) }
    default:
      return part satisfies never
  }
}

const SEALED: ShownValue = {
  value: { is: 'tag', tag: 'encrypted', text: '' },
  text: '‹encrypted›',
  bytes: 0,
  isCut: false,
  isRedacted: true,
}

function logOf({ attempts, log, state }: JobRecord, show: Show, isSealed: boolean): JobPartAnswer['log'] {
  if (isSealed) return { attempts: [] }
  const ended = attempts.map((attempt, i) => ({ number: i + 1, lines: show.lines(attempt.log) }))
  return { attempts: state === 'running' ? [...ended, { number: ended.length + 1, lines: show.lines(log) }] : ended }
}

/** Parents up to two generations. The store has no read of the children of a job yet. */
async function graphOf(parts: Parts, record: JobRecord, show: Show): Promise<GraphAnswer> {
  const nodes = new Map<string, GraphNode>([[record.id, nodeOf(record, 0, show)]])
  const edges: (readonly [string, string])[] = []
  let [layer, moreParents]: [readonly JobRecord[], number] = [[record], 0]
  for (let depth = 1; depth <= GENERATIONS; depth += 1) {
    const links = layer.flatMap((child) => child.after.map((parent) => [parent, child.id] as const))
    const next = [...new Set(links.map(([parent]) => parent))].filter((id) => !nodes.has(id))
    const read = next.slice(0, NODES_MAX - nodes.size)
    moreParents += next.length - read.length
    const found = (await Promise.all(read.map((id) => parts.mill.get(id)))).filter((each) => each !== undefined)
    for (const each of found) nodes.set(each.id, nodeOf(each, -depth, show))
    edges.push(...links.filter(([parent]) => nodes.has(parent)))
    layer = found
  }
  return { nodes: [...nodes.values()], edges, moreParents, moreChildren: 0, childrenQuery: `after:${record.id}` }
}

function nodeOf({ id, job, title, state }: JobRecord, layer: number, show: Show): GraphNode {
  return { id, job, title: show.text(title), state, layer }
}

async function latelyOf({ mill }: Parts, { job }: JobRecord): Promise<LatelyAnswer> {
  const { rows } = await mill.findPage({ job, state: ['done', 'failed'] }, { limit: LATELY })
  const took = rows
    .flatMap(({ id, state, startedAt, settledAt }) =>
      startedAt === undefined || settledAt === undefined
        ? []
        : [{ id, at: settledAt.getTime(), ms: settledAt.getTime() - startedAt.getTime(), state }],
    )
    .toSorted((a, b) => a.at - b.at)
  const sorted = took.map(({ ms }) => ms).toSorted((a, b) => a - b)
  const at = (share: number): number | null =>
    sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? null
  return { took, p50: at(0.5), p95: at(0.95) }
}

function jsonOf(record: JobRecord, show: Show, isSealed: boolean): string {
  const { raw: _raw, ...rest } = record
  const open = isSealed
    ? { ...rest, payload: 'encrypted', result: 'encrypted', error: undefined, attempts: [], log: undefined }
    : rest
  return show.value(open, '', SHOWN_ALL_BYTES).text
}

/** A test that runs the handler with this payload. */
function testOf({ job, payload, id }: JobRecord, show: Show, isSealed: boolean): string {
  const value = isSealed ? '/* encrypted */ undefined' : show.value(payload, 'payload').text
  return [
    `import { expect, test } from 'vitest'`,
    `import { testing } from 'millrace/testing'`,
    `import { jobs } from './jobs.js'`,
    '',
    `test(${JSON.stringify(`${job} runs with the payload of ${id}`)}, async () => {`,
    `  const t = await testing({ jobs })`,
    `  await t.mill.enqueue(${JSON.stringify(job)}, ${value.replaceAll('\n', '\n  ')})`,
    `  await t.drain()`,
    `  await t.close()`,
    '})',
    '',
  ].join('\n')
}

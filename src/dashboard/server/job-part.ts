import type { Page } from '../../client/read/page.js'
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
/** Relatives of one job that are read. */
const LAYER = 40
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

/** Parents and children up to two generations, as many as a page can show. */
async function graphOf(parts: Parts, record: JobRecord, show: Show): Promise<GraphAnswer> {
  const graph: Graph = { nodes: new Map([[record.id, nodeOf(record, 0, show)]]), edges: new Set() }
  const moreParents = await addLayers(graph, record, -1, {
    read: (id) => parts.mill.parents(id, { limit: LAYER }),
    show,
  })
  const moreChildren = await addLayers(graph, record, 1, {
    read: (id) => parts.mill.children(id, { limit: LAYER }),
    show,
  })
  return {
    nodes: [...graph.nodes.values()],
    edges: [...graph.edges].map((edge) => edge.split(' ') as [string, string]),
    moreParents,
    moreChildren,
    childrenQuery: `after:${record.id}`,
  }
}

interface Graph {
  readonly nodes: Map<string, GraphNode>
  /** Parent and child, with a space between. */
  readonly edges: Set<string>
}

interface Relatives {
  readonly read: (id: string) => Promise<Page<JobRecord>>
  readonly show: Show
}

/** Adds what is before or after a job, generation by generation. Gives how many relatives are known to be left out. */
async function addLayers(
  { nodes, edges }: Graph,
  record: JobRecord,
  step: 1 | -1,
  { read, show }: Relatives,
): Promise<number> {
  let [layer, more]: [readonly JobRecord[], number] = [[record], 0]
  for (let depth = 1; depth <= GENERATIONS && layer.length > 0; depth += 1) {
    const next: JobRecord[] = []
    const pages = await Promise.all(layer.map(({ id }) => read(id)))
    for (const [i, { rows, cursor }] of pages.entries()) {
      const from = layer[i] as JobRecord
      if (cursor !== undefined) more += 1
      for (const relative of rows) {
        if (!nodes.has(relative.id) && nodes.size >= NODES_MAX) {
          more += 1
          continue
        }
        if (!nodes.has(relative.id)) next.push(relative)
        nodes.set(relative.id, nodes.get(relative.id) ?? nodeOf(relative, step * depth, show))
        edges.add(step < 0 ? `${relative.id} ${from.id}` : `${from.id} ${relative.id}`)
      }
    }
    layer = next
  }
  return more
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

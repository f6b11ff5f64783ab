import type { JobFields, JobRow, StepRow } from './jobs.js'
import type {
  AuditFields,
  AuditRow,
  BulkFields,
  EnqueueFields,
  EnqueueFormFields,
  EnqueueRow,
  FailureFields,
  FailureRow,
  FailuresFields,
  FindingRow,
  GroupFields,
  GroupRow,
  GroupsFields,
  HealthFields,
  ListFields,
  OverviewFields,
  QueueFields,
  QueueRow,
  QueuesFields,
  RecurringFields,
  RecurringListFields,
  RecurringRow,
  SequenceFields,
  SequenceItemRow,
  SequenceRow,
  SequencesFields,
  Tick,
  UpcomingFields,
  UpcomingRow,
  WorkerRow,
  WorkersFields,
} from './rows.js'

/** The time that charts show, and how long it is. */
export const SPANS = {
  '15m': 900_000,
  '1h': 3_600_000,
  '6h': 21_600_000,
  '24h': 86_400_000,
  '7d': 604_800_000,
} as const
export type Span = keyof typeof SPANS
export type SpanMs = (typeof SPANS)[Span]
export const UPCOMING_SPANS = ['1h', '6h', '24h', '7d'] as const satisfies readonly Span[]
export type UpcomingSpan = (typeof UPCOMING_SPANS)[number]
export const FAILURE_SPANS = ['deploy', '1h', '24h', '7d'] as const
export type FailureSpan = (typeof FAILURE_SPANS)[number]

/** The order of a list. `ListFields.sorts` says which of them this version has. */
export const SORTS = ['changed', 'newest', 'oldest', 'longest-wait', 'longest-run'] as const
export type Sort = (typeof SORTS)[number]

/** The fields and the rows of each kind of topic. */
export interface TopicTypes {
  health: { fields: HealthFields; row: FindingRow }
  overview: { fields: OverviewFields; row: QueueRow }
  queues: { fields: QueuesFields; row: QueueRow }
  queue: { fields: QueueFields; row: WorkerRow }
  list: { fields: ListFields; row: JobRow }
  workflows: { fields: ListFields; row: JobRow }
  job: { fields: JobFields; row: StepRow }
  failures: { fields: FailuresFields; row: FailureRow }
  failure: { fields: FailureFields; row: JobRow }
  recurring: { fields: RecurringListFields; row: RecurringRow }
  'recurring:': { fields: RecurringFields; row: Tick }
  groups: { fields: GroupsFields; row: GroupRow }
  group: { fields: GroupFields; row: GroupRow }
  sequences: { fields: SequencesFields; row: SequenceRow }
  sequence: { fields: SequenceFields; row: SequenceItemRow }
  workers: { fields: WorkersFields; row: WorkerRow }
  upcoming: { fields: UpcomingFields; row: UpcomingRow }
  audit: { fields: AuditFields; row: AuditRow }
  enqueue: { fields: EnqueueFields; row: EnqueueRow }
  'enqueue:': { fields: EnqueueFormFields; row: never }
  bulk: { fields: BulkFields; row: never }
}
export type TopicKind = keyof TopicTypes
export type FieldsOf<Kind extends TopicKind> = TopicTypes[Kind]['fields']
export type RowOf<Kind extends TopicKind> = TopicTypes[Kind]['row']

/** A topic in parts. `name` is what the text ends with: a name, an id, a search. */
export type Topic =
  | { readonly kind: 'health' | 'queues' | 'recurring' | 'groups' | 'sequences' | 'workers' | 'enqueue' }
  | { readonly kind: 'overview'; readonly span: Span }
  | { readonly kind: 'queue'; readonly span: Span; readonly name: string }
  | { readonly kind: 'list' | 'workflows'; readonly sort: Sort; readonly name: string }
  | { readonly kind: 'failures'; readonly span: FailureSpan }
  | { readonly kind: 'upcoming'; readonly span: UpcomingSpan }
  | {
      readonly kind: 'job' | 'failure' | 'recurring:' | 'group' | 'sequence' | 'enqueue:' | 'bulk' | 'audit'
      readonly name: string
    }

/** The text of a topic. */
export function writeTopic(topic: Topic): string {
  const { kind } = topic
  if (kind === 'recurring:' || kind === 'enqueue:') return kind + topic.name
  if ('sort' in topic) return `${kind}:${topic.sort}:${topic.name}`
  if ('span' in topic) return 'name' in topic ? `${kind}:${topic.span}:${topic.name}` : `${kind}:${topic.span}`
  return 'name' in topic ? `${kind}:${topic.name}` : kind
}

/** The parts of a topic; undefined when it is none. */
export function parseTopic(text: string): Topic | undefined {
  const [kind, rest] = cut(text)
  if (rest === undefined) return isOneOf(kind, PLAIN) ? { kind } : undefined
  if (kind === 'recurring' || kind === 'enqueue') return rest === '' ? undefined : { kind: `${kind}:`, name: rest }
  if (isOneOf(kind, NAMED)) return rest === '' && kind !== 'audit' ? undefined : { kind, name: rest }
  if (kind === 'overview') return isOneOf(rest, SPAN_NAMES) ? { kind, span: rest } : undefined
  if (kind === 'failures') return isOneOf(rest, FAILURE_SPANS) ? { kind, span: rest } : undefined
  if (kind === 'upcoming') return isOneOf(rest, UPCOMING_SPANS) ? { kind, span: rest } : undefined
  const [first, name] = cut(rest)
  if (name === undefined) return undefined
  if (kind === 'queue') return isOneOf(first, SPAN_NAMES) && name !== '' ? { kind, span: first, name } : undefined
  if (kind !== 'list' && kind !== 'workflows') return undefined
  return isOneOf(first, SORTS) ? { kind, sort: first, name } : undefined
}

const PLAIN = ['health', 'queues', 'recurring', 'groups', 'sequences', 'workers', 'enqueue'] as const
const NAMED = ['job', 'failure', 'group', 'sequence', 'bulk', 'audit'] as const
const SPAN_NAMES = Object.keys(SPANS) as Span[]

function cut(text: string): [string, string | undefined] {
  const at = text.indexOf(':')
  return at < 0 ? [text, undefined] : [text.slice(0, at), text.slice(at + 1)]
}

function isOneOf<Text extends string>(text: string, of: readonly Text[]): text is Text {
  return (of as readonly string[]).includes(text)
}

/** What may follow a qualifier. */
export interface Qualifier {
  readonly name: string
  /** 'text': any; 'state' and 'is': one of a list; 'time' and 'span': see times.ts; 'number'; 'value': text, number, true, false, null. */
  readonly of: 'text' | 'state' | 'is' | 'time' | 'span' | 'number' | 'value'
  /** It has a path: payload.user.id. */
  readonly hasPath?: boolean
  /** It may be compared: attempt:>3. */
  readonly compares?: boolean
  readonly cost: 'index' | 'scan'
  readonly example: string
  readonly hint: string
}

export const STATES = [
  'scheduled',
  'ready',
  'running',
  'retrying',
  'blocked',
  'paused',
  'parked',
  'done',
  'failed',
  'cancelled',
] as const
export const KINDS = [
  'workflow',
  'sequence',
  'recurring',
  'slow',
  'probing',
  'encrypted',
  'unfinished',
  'final',
] as const

const text = (name: string, cost: Qualifier['cost'], example: string, hint: string): Qualifier => ({
  name,
  of: 'text',
  cost,
  example,
  hint,
})
const values = (name: string): Qualifier => ({
  name,
  of: 'value',
  hasPath: true,
  compares: true,
  cost: 'scan',
  example: `${name}.user.id:42`,
  hint: `a value of the ${name}, by its path`,
})
const time = (name: string, cost: Qualifier['cost'], hint: string): Qualifier => ({
  name,
  of: 'time',
  cost,
  example: `${name}:1h`,
  hint,
})

/** Every qualifier of a search for jobs. */
export const QUALIFIERS: readonly Qualifier[] = [
  { name: 'state', of: 'state', cost: 'index', example: 'state:failed', hint: 'one or more states' },
  text('queue', 'index', 'queue:mail', 'the name of a queue'),
  text('job', 'index', 'job:send-email', 'the name of a job or a category'),
  text('label', 'index', 'label:billing', 'a label'),
  text('key', 'index', 'key:order-1043', 'the key'),
  text('group', 'index', 'group:campaign-42', 'the name of a group'),
  text('sequence', 'scan', 'sequence:01980f2c-…', 'the id of a sequence'),
  text('schedule', 'scan', 'schedule:daily-digest', 'the id of a recurring job'),
  text('print', 'index', 'print:8f3a…', 'the fingerprint of a failure'),
  text('after', 'index', 'after:01980f2c-…', 'the id of a parent'),
  time('since', 'index', 'made after: 1h, 2026-11-15, 14:02, yesterday, deploy'),
  time('until', 'index', 'made before'),
  time('changed', 'scan', 'changed after'),
  { ...time('due', 'scan', 'due before'), compares: true },
  values('payload'),
  values('result'),
  values('meta'),
  values('captured'),
  text('error', 'scan', 'error:timeout', 'class, code or text of the error'),
  text('log', 'scan', 'log:gateway', 'text of a log line'),
  text('title', 'scan', 'title:order', 'text of the title'),
  {
    name: 'attempt',
    of: 'number',
    compares: true,
    cost: 'scan',
    example: 'attempt:>3',
    hint: 'attempts that were counted',
  },
  { name: 'priority', of: 'number', compares: true, cost: 'scan', example: 'priority:>0', hint: 'the priority' },
  {
    name: 'took',
    of: 'span',
    compares: true,
    cost: 'scan',
    example: 'took:>30s',
    hint: 'how long the last attempt ran',
  },
  {
    name: 'wait',
    of: 'span',
    compares: true,
    cost: 'scan',
    example: 'wait:>5m',
    hint: 'from its due time to its first start',
  },
  text('worker', 'scan', 'worker:3f2a', 'the worker of the last attempt'),
  text('host', 'scan', 'host:web-1', 'the host of the last attempt'),
  text('version', 'scan', 'version:1.42', 'the version that ran the last attempt'),
  { name: 'is', of: 'is', cost: 'scan', example: 'is:recurring', hint: KINDS.join(', ') },
]

/** Those of the audit trail. */
export const AUDIT_QUALIFIERS: readonly Qualifier[] = [
  text('actor', 'index', 'actor:ada', 'who gave the command'),
  text('verb', 'index', 'verb:retry', 'the command'),
  text('target', 'index', 'target:"queue mail"', 'what it was given to'),
  time('since', 'index', 'written after'),
]

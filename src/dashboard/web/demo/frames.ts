import type {
  FailureRow,
  FieldsOf,
  JobFields,
  JobRow,
  QueueRow,
  RowOf,
  SeriesShown,
  Snapshot,
  StepRow,
  Tick,
  TopicKind,
  WorkerRow,
} from '../../protocol.js'

/** The instant of the demo frames: a page that is drawn from them is always the same. */
export const DEMO_NOW = Date.UTC(2026, 10, 18, 14, 31, 7)
const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR
const NOW = DEMO_NOW
const DEPLOY = NOW - 29 * MINUTE

/** A row of even numbers that look measured; the same at each run. */
function wave(length: number, low: number, high: number, seed: number): number[] {
  return Array.from({ length }, (_, i) => {
    const at =
      Math.sin(i / 5 + seed) * 0.4 + Math.sin(i / 1.7 + seed * 3) * 0.25 + Math.sin(i * 12.9898 + seed) * 0.2 + 0.5
    return Math.max(0, Math.round(low + (high - low) * Math.min(1, Math.max(0, at))))
  })
}

function snapshot<Kind extends TopicKind>(
  _kind: Kind,
  topic: string,
  fields: FieldsOf<Kind>,
  rows: readonly (readonly [string, RowOf<Kind>])[] = [],
): Snapshot<FieldsOf<Kind>, RowOf<Kind>> {
  return {
    topic,
    id: 'demo.0',
    now: NOW,
    fields,
    rows: Object.fromEntries(rows),
    order: rows.map(([id]) => id),
    cursor: null,
  }
}

const counts = (given: Partial<Record<JobRow['state'], number>> = {}) => {
  const of = (state: JobRow['state']) => ({ n: given[state] ?? 0, exact: true })
  return {
    scheduled: of('scheduled'),
    ready: of('ready'),
    running: of('running'),
    retrying: of('retrying'),
    blocked: of('blocked'),
    paused: of('paused'),
    parked: of('parked'),
    done: of('done'),
    failed: of('failed'),
    cancelled: of('cancelled'),
  }
}
const plainCounts = (given: Partial<Record<JobRow['state'], number>>) =>
  Object.fromEntries(Object.entries(counts(given)).map(([state, { n }]) => [state, n])) as Record<
    JobRow['state'],
    number
  >

function queue(name: string, change: Partial<QueueRow>): QueueRow {
  return {
    name,
    state: 'open',
    pausedAt: null,
    pausedUntil: null,
    outages: [],
    counts: counts(),
    waiting: { n: 0, exact: true },
    oldestDueAt: null,
    running: 0,
    slots: 10,
    limit: null,
    rate: null,
    perMinute: 0,
    spark: wave(60, 10, 90, name.length),
    failed: { n: 0, exact: true },
    retryPercent: 0,
    waitP95Ms: 90,
    emptyInMs: 0,
    growsPerMinute: null,
    ...change,
  }
}

export const QUEUES: readonly QueueRow[] = [
  queue('billing', {
    state: 'probing',
    outages: [
      {
        job: 'charge',
        state: 'probing',
        since: DEPLOY,
        waiting: 388,
        text: 'charge failed 5 times in a row: one retry per 5 s.',
      },
    ],
    waiting: { n: 9_214, exact: true },
    oldestDueAt: NOW - 192 * SECOND,
    running: 24,
    slots: 24,
    perMinute: 402,
    failed: { n: 412, exact: true },
    retryPercent: 18,
    waitP95Ms: 180_000,
    emptyInMs: 2 * HOUR + 10 * MINUTE,
  }),
  queue('reports', {
    state: 'paused',
    pausedAt: NOW - 2 * HOUR,
    pausedUntil: NOW + 3.5 * HOUR,
    waiting: { n: 41, exact: true },
    oldestDueAt: NOW - 2 * HOUR,
    slots: 2,
    perMinute: 0,
    spark: Array.from({ length: 60 }, (_, i) => (i < 20 ? 1 : 0)),
    retryPercent: 1,
    waitP95Ms: null,
    emptyInMs: null,
  }),
  queue('default', {
    waiting: { n: 12, exact: true },
    oldestDueAt: NOW - 400,
    running: 6,
    perMinute: 780,
    retryPercent: 0,
    waitP95Ms: 90,
  }),
  queue('mail', {
    waiting: { n: 1_310, exact: true },
    oldestDueAt: NOW - 92 * SECOND,
    running: 4,
    slots: 4,
    rate: { max: 100, perMs: MINUTE },
    perMinute: 100,
    retryPercent: 4,
    waitP95Ms: 64_000,
    emptyInMs: null,
    growsPerMinute: 40,
  }),
  queue('media', {
    waiting: { n: 3, exact: true },
    oldestDueAt: NOW - 2 * SECOND,
    running: 8,
    perMinute: 22,
    waitP95Ms: 3_400,
    emptyInMs: 8_000,
  }),
  queue('legacy', {
    waiting: { n: 3, exact: true },
    oldestDueAt: NOW - 3 * DAY,
    slots: null,
    perMinute: 0,
    spark: Array.from({ length: 60 }, () => 0),
    retryPercent: null,
    waitP95Ms: null,
    emptyInMs: null,
  }),
  queue(
    'a-queue-whose-name-is-so-very-long-that-no-column-of-any-table-on-any-screen-will-ever-hold-it-in-one-line-without-an-ellipsis-and-a-title-that-has-all-of-it',
    { slots: null, perMinute: 0.3 },
  ),
]

const series: SeriesShown = {
  at: NOW - HOUR,
  bucketMs: MINUTE,
  done: wave(60, 900, 1_400, 1).map((n, i) => (i > 30 ? Math.round(n * 0.85) : n)),
  failed: wave(60, 4, 22, 2).map((n, i) => (i < 31 ? 0 : n)),
  retried: wave(60, 0, 9, 3),
  wait: {
    p50: wave(60, 40, 90, 4),
    p95: wave(60, 400, 1_900, 5).map((n, i) => (i > 30 ? n * 3 : n)),
    p99: wave(60, 900, 4_000, 6).map((n, i) => (i > 30 ? n * 3 : n)),
  },
  run: { p50: wave(60, 300, 420, 7), p95: wave(60, 700, 1_100, 8), p99: wave(60, 1_400, 2_600, 9) },
}

const FAILURES: readonly FailureRow[] = [
  {
    fingerprint: 'a1b2c3',
    job: 'charge',
    error: 'CardError',
    message: 'card declined',
    place: 'src/jobs/charge.ts:41',
    count: 400,
    spark: series.failed,
    firstSeen: DEPLOY,
    lastSeen: NOW - 4_000,
    isNew: true,
    retryable: { n: 400, exact: true },
  },
  {
    fingerprint: 'd4e5f6',
    job: 'send-email',
    error: 'TimeoutError',
    message: 'the mail server mail.example.com:587 did not answer within 10 s',
    place: 'src/mail.ts:12',
    count: 11,
    spark: wave(60, 0, 3, 4),
    firstSeen: NOW - 15 * DAY,
    lastSeen: NOW - 130_000,
    isNew: false,
    retryable: { n: 11, exact: true },
  },
  {
    fingerprint: 'e5f6a7',
    job: 'import-row',
    error: 'ValidationError',
    message: '<script>alert(1)</script> is no country',
    place: 'src/import/row.ts:88',
    count: 1,
    spark: wave(60, 0, 1, 8),
    firstSeen: NOW - 3 * HOUR,
    lastSeen: NOW - 3 * HOUR,
    isNew: false,
    retryable: { n: 1, exact: true },
  },
]

function job(id: string, change: Partial<JobRow>): JobRow {
  return {
    id: `01980f2c-${id.padStart(4, '0')}-7bbb-8ccc-0123456789e4`,
    job: 'charge',
    title: null,
    queue: 'billing',
    state: 'ready',
    why: null,
    error: null,
    reason: null,
    attempt: 0,
    attemptMax: 10,
    priority: 0,
    labels: [],
    key: null,
    group: null,
    schedule: null,
    kind: 'job',
    progress: null,
    createdAt: NOW - 5 * MINUTE,
    dueAt: NOW - 5 * MINUTE,
    startedAt: null,
    settledAt: null,
    changedAt: NOW - 2 * MINUTE,
    tookMs: null,
    step: null,
    ...change,
  }
}

const CARD_ERROR = { name: 'CardError', message: 'card declined', code: 'DECLINED' }
const why = (reason: NonNullable<JobRow['why']>['reason'], text: string) => ({ reason, text, blockers: [] })
export const JOBS: readonly JobRow[] = [
  job('1', {
    title: 'Order 1042',
    state: 'failed',
    error: CARD_ERROR,
    attempt: 10,
    tookMs: 842,
    settledAt: NOW - 2 * MINUTE,
  }),
  job('2', {
    title: 'Order 1043',
    state: 'retrying',
    error: CARD_ERROR,
    attempt: 2,
    tookMs: 1_200,
    changedAt: NOW - 3 * MINUTE,
    why: why('probing', 'Attempt 3 is due in 40 s. Queue billing is probing: 388 held.'),
  }),
  job('3', {
    job: 'send-email',
    title: 'Welcome',
    queue: 'mail',
    attemptMax: 25,
    changedAt: NOW - 192_000,
    why: why('limit', 'The rate of mail is 100 per minute; its turn is ≈ 14:31:20.'),
  }),
  job('4', {
    job: 'thumbs',
    title: 'IMG_2041.jpg',
    queue: 'media',
    state: 'running',
    attempt: 0,
    attemptMax: 5,
    progress: { done: 3, total: 10 },
    startedAt: NOW - 41_000,
    changedAt: NOW - 41_000,
  }),
  job('5', {
    job: 'crasher',
    queue: 'default',
    state: 'parked',
    reason: 'Its crash budget is spent: its process died 3 times while it ran alone.',
    attempt: 3,
    changedAt: NOW - HOUR,
  }),
  job('6', {
    job: 'ship',
    title: 'Order 977',
    queue: 'default',
    state: 'blocked',
    changedAt: NOW - 4 * MINUTE,
    why: why('parents', 'It waits for charge 01980f2c, which is retrying.'),
  }),
  job('7', {
    job: 'newsletter',
    title: '\u{1f4e7} عرض خاص for you',
    queue: 'mail',
    state: 'done',
    attempt: 1,
    tookMs: 312,
    settledAt: NOW - 30_000,
    changedAt: NOW - 30_000,
  }),
  job('8', {
    job: 'import-row',
    title: '<script>alert(1)</script>',
    queue: 'default',
    state: 'done',
    attempt: 1,
    tookMs: 0.4,
    changedAt: NOW - 31_000,
  }),
  job('9', {
    job: 'nightly-report',
    queue: 'reports',
    state: 'scheduled',
    attempt: 0,
    dueAt: NOW + 9 * HOUR,
    changedAt: NOW - DAY,
    why: why('time', 'It is due tomorrow at 00:30.'),
  }),
  job('10', {
    job: 'export-pdf',
    title: `A title of a hundred and eighty characters ${'that goes on '.repeat(11)}`,
    queue: 'reports',
    state: 'paused',
    attempt: 0,
    changedAt: NOW - 2 * DAY,
    why: why('paused', 'operator paused it at 12:04.'),
  }),
  job('11', {
    job: 'old-order',
    queue: 'default',
    state: 'cancelled',
    attempt: 1,
    reason: 'cancelled by operator',
    changedAt: NOW - 3 * HOUR,
    tookMs: 61_000,
  }),
]

const STACK = `CardError: card declined
    at charge (/app/src/jobs/charge.ts:41:11)
    at pay (/app/src/pay.ts:12:9)
    at async run (/app/node_modules/millrace/dist/worker/attempt/run.js:90:5)
    at async node:internal/process/task_queues:95:5`
const error = {
  ...CARD_ERROR,
  stack: STACK,
  place: 'charge (src/jobs/charge.ts:41)',
  props: null,
  cause: {
    name: 'HttpError',
    message: 'HTTP 402 from api.pay',
    code: 402,
    stack: null,
    place: null,
    props: null,
    cause: null,
    errors: [],
  },
  errors: [],
}

function jobFields(row: JobRow, change: Partial<JobFields>): JobFields {
  return {
    ...row,
    crashes: 0,
    requested: null,
    after: [],
    calledBy: null,
    expiresAt: null,
    tick: null,
    lastError: null,
    attempts: [],
    timeline: [],
    flags: [],
    logTail: [],
    encrypted: false,
    undecoded: null,
    description: null,
    trace: null,
    workflow: null,
    sequence: null,
    ...change,
  }
}

const T = NOW - 68_000
export const RETRYING = jobFields(JOBS[1] as JobRow, {
  key: 'order-1043',
  labels: ['billing', 'vip'],
  lastError: error,
  why: {
    reason: 'probing',
    text: 'Attempt 3 is due in 40 s (14:31:47). Queue billing is probing after 5 failures in a row: one retry per 5 s.',
    blockers: [{ kind: 'queue', id: 'billing', link: '#/queues/billing' }],
  },
  createdAt: T,
  attempts: [
    {
      number: 1,
      startedAt: T + 5_400,
      endedAt: T + 6_242,
      worker: '3f',
      host: 'web-1',
      error,
      exit: null,
      logLines: 12,
    },
    {
      number: 2,
      startedAt: T + 8_300,
      endedAt: T + 9_500,
      worker: 'a1',
      host: 'web-2',
      error,
      exit: null,
      logLines: 3,
    },
  ],
  timeline: [
    { kind: 'scheduled', from: T, to: T + 5_000, attempt: null },
    { kind: 'ready', from: T + 5_000, to: T + 5_400, attempt: null },
    { kind: 'running', from: T + 5_400, to: T + 6_242, attempt: 1 },
    { kind: 'back-off', from: T + 6_242, to: T + 8_242, attempt: null },
    { kind: 'ready', from: T + 8_242, to: T + 8_300, attempt: null },
    { kind: 'running', from: T + 8_300, to: T + 9_500, attempt: 2 },
    { kind: 'back-off', from: T + 9_500, to: NOW + 40_000, attempt: null },
  ],
  flags: [
    {
      at: T + 8_000,
      verb: 'retry',
      actor: 'operator',
      before: 'retrying',
      after: 'ready',
      reason: 'card service is back',
    },
  ],
})

const W = Date.UTC(2026, 10, 18, 12, 0, 0)
const step = (address: string, change: Partial<StepRow>): StepRow => ({
  address,
  parent: null,
  name: address,
  kind: 'step',
  state: 'done',
  attempt: 1,
  startedAt: W,
  endedAt: W + 1_000,
  until: null,
  result: null,
  error: null,
  log: [],
  child: null,
  foreign: false,
  unknown: false,
  ...change,
})
export const STEPS: readonly StepRow[] = [
  step('load-order', { startedAt: W + 20, endedAt: W + 230 }),
  step('checks', { kind: 'all', startedAt: W + 240, endedAt: W + 2_200 }),
  step('stock', { parent: 'checks', startedAt: W + 250, endedAt: W + 2_150, attempt: 2 }),
  step('card-check', {
    parent: 'checks',
    kind: 'call',
    startedAt: W + 250,
    endedAt: W + 1_050,
    child: (JOBS[0] as JobRow).id,
  }),
  step('cool-off', { kind: 'sleep', startedAt: W + 2_210, endedAt: W + 2 * HOUR }),
  step('approved', { kind: 'event', state: 'open', startedAt: W + 2 * HOUR + 10, endedAt: null, until: NOW + 2 * DAY }),
]
export const WORKFLOW = jobFields(
  job('77', {
    job: 'refund',
    title: 'Order 977',
    state: 'blocked',
    kind: 'workflow',
    createdAt: W,
    changedAt: W + 2 * HOUR,
    why: why('event', 'It waits for the event approved until 20 Nov 14:31.'),
    step: { name: 'approved', kind: 'event', done: 5 },
  }),
  {
    workflow: {
      run: 1,
      answers: 6,
      waitingFor: [
        { address: 'approved', kind: 'event', name: 'approved', until: NOW + 2 * DAY, event: 'approved', job: null },
      ],
      warnings: [],
      unread: 0,
      requested: null,
    },
    attempts: [],
  },
)
export const RUNNING = jobFields(JOBS[3] as JobRow, {
  attempts: [
    {
      number: 1,
      startedAt: NOW - 41_000,
      endedAt: null,
      worker: '3f',
      host: 'web-1',
      error: null,
      exit: null,
      logLines: 4,
    },
  ],
  timeline: [
    { kind: 'ready', from: NOW - 43_000, to: NOW - 41_000, attempt: null },
    { kind: 'running', from: NOW - 41_000, to: null, attempt: 1 },
  ],
  logTail: [
    '14:30:26.001 info   read IMG_2041.jpg, 8.1 MB',
    '14:30:41.220 info   320 px written',
    '14:30:55.870 info   640 px written',
    '14:31:05.114 info   1280 px written',
  ],
})

const tick = (i: number, outcome: Tick['outcome'], change: Partial<Tick> = {}): Tick => ({
  at: NOW - i * DAY - 5.5 * HOUR,
  outcome,
  reason: null,
  job: outcome === 'skipped' ? null : (JOBS[6] as JobRow).id,
  state: outcome === 'skipped' ? null : 'done',
  firedAt: NOW - i * DAY,
  tookMs: 42_000,
  ...change,
})
const digestTicks = Array.from({ length: 30 }, (_, i) =>
  tick(30 - i, i === 7 ? 'caught up' : i === 20 ? 'run now' : 'ran', i === 26 ? { state: 'failed' } : {}),
)
const syncTicks = Array.from({ length: 30 }, (_, i) =>
  tick(30 - i, i % 2 === 0 ? 'ran' : 'skipped', i % 2 === 0 ? {} : { reason: 'the run before had not ended' }),
)

const worker = (id: string, host: string, change: Partial<WorkerRow>): WorkerRow => ({
  id,
  host,
  pid: 811,
  version: 'v1.42',
  state: 'alive',
  startedAt: NOW - 2 * HOUR,
  beatAt: NOW - 1_000,
  diedAt: null,
  slots: 10,
  busy: 10,
  names: ['charge', 'send-email', 'thumbs'],
  running: [
    { job: 'charge', queue: 'billing', count: 8, since: NOW - 41_000 },
    { job: 'thumbs', queue: 'media', count: 2, since: NOW - 3_000 },
  ],
  blockedBy: null,
  memoryBytes: 212e6,
  loopDelayMs: 12,
  donePerMinute: 402,
  ...change,
})
const WORKERS: readonly WorkerRow[] = [
  worker('3f9a2c11', 'web-1', {}),
  worker('a1b0c2d3', 'web-2', { pid: 92, busy: 9, donePerMinute: 380 }),
  worker('c7e8f9a0', 'web-3', {
    pid: 4_411,
    state: 'silent',
    beatAt: NOW - 12_000,
    busy: 3,
    loopDelayMs: null,
    donePerMinute: 0,
    running: [{ job: 'charge', queue: 'billing', count: 3, since: NOW - 70_000 }],
  }),
  worker('e5d6c7b8', 'web-4', { pid: 17, version: 'v1.41', startedAt: NOW - 9 * DAY, busy: 10 }),
  worker('00dead00', 'web-3', {
    state: 'dead',
    diedAt: NOW - 4 * MINUTE,
    beatAt: NOW - 5 * MINUTE,
    busy: 0,
    running: [],
    donePerMinute: null,
    memoryBytes: null,
    loopDelayMs: null,
  }),
]

const upcoming = (at: number, name: string, change: Partial<RowOf<'upcoming'>> = {}): RowOf<'upcoming'> => ({
  at,
  job: name,
  queue: 'default',
  title: null,
  id: null,
  state: null,
  schedule: name,
  from: 'schedule',
  usuallyTakesMs: 42_000,
  ...change,
})
const NEXT = [
  upcoming(NOW + 40_000, 'charge', {
    schedule: null,
    id: (JOBS[1] as JobRow).id,
    state: 'retrying',
    title: 'Order 1043',
    queue: 'billing',
    from: 'retry',
    usuallyTakesMs: 900,
  }),
  upcoming(NOW + 233_000, 'sync-stock', { usuallyTakesMs: 370_000 }),
  upcoming(NOW + 533_000, 'sync-stock', { usuallyTakesMs: 370_000 }),
  upcoming(NOW + 9 * HOUR, 'nightly-report', {
    queue: 'reports',
    from: 'timer',
    schedule: null,
    id: (JOBS[8] as JobRow).id,
    state: 'scheduled',
  }),
  upcoming(NOW + 17.5 * HOUR, 'daily-digest', { queue: 'mail' }),
]

const verdict = {
  kind: 'bad' as const,
  problems: 2,
  text: [
    '2 problems. ',
    { text: 'charge has failed since 14:02: 400 jobs, one cause', to: '#/failures/a1b2c3' },
    '. Queue ',
    { text: 'billing is probing, 388 held', to: '#/queues/billing' },
    '.',
  ],
}

const byId = <Row extends { readonly id?: unknown; readonly name?: unknown; readonly fingerprint?: unknown }>(
  rows: readonly Row[],
) => rows.map((row) => [String(row.id ?? row.name ?? row.fingerprint), row] as const)
const listFields: FieldsOf<'list'> = {
  query: '',
  sort: 'newest',
  sorts: ['newest', 'oldest'],
  counts: counts({
    scheduled: 210,
    ready: 9_412,
    running: 38,
    retrying: 388,
    blocked: 12,
    paused: 3,
    parked: 2,
    done: 1_284_903,
    failed: 412,
    cancelled: 91,
  }),
  scanned: 0,
  reachedAt: null,
  newer: { n: 12, exact: true },
  histogram: { at: NOW - HOUR, bucketMs: MINUTE, counts: wave(60, 10, 90, 3) },
  hidden: [],
  keptFromMs: null,
  problem: null,
}

/** Every page once, with what is hard to draw: long names, right-to-left titles, script in texts, unknown numbers. */
export const FRAMES: readonly Snapshot[] = [
  snapshot(
    'health',
    'health',
    {
      verdict,
      healthy: false,
      checkedAt: NOW - 2_000,
      store: { engine: 'PostgreSQL', name: 'shop', latencyMs: 3 },
      workers: { alive: 4, silent: 1, dead: 1 },
      nav: { failed: { n: 412, exact: true }, workersMissing: 1, findings: 2 },
      good: [
        { name: 'store', text: 'PostgreSQL 18, 3 ms' },
        { name: 'push', text: 'latency 0.6 ms' },
        { name: 'WAL', text: '12 MB' },
        { name: 'clock', text: '± 8 ms' },
        { name: 'migrations', text: '14 of 14' },
        { name: 'loop', text: 'p99 12 ms' },
      ],
      build: 'demo',
    },
    [
      [
        'horizon',
        {
          kind: 'horizon',
          level: 'warn',
          text: 'A snapshot has been held for 14 m by pid 812 "pg_dump".',
          since: NOW - 14 * MINUTE,
          effect: 'Vacuum cannot clean up rows that died since: reads of the queue grow slower.',
          mend: 'Wait for pg_dump to end, or stop it with pg_terminate_backend(812).',
          link: null,
        },
      ],
      [
        'slow',
        {
          kind: 'slow-handler',
          level: 'bad',
          text: 'export-pdf has run for 6 m; it usually takes 40 s.',
          since: NOW - 6 * MINUTE,
          effect: 'It holds one of 2 slots of the queue reports.',
          mend: 'Look at its log, and set a timeout for the job.',
          link: '#/jobs?q=job%3Aexport-pdf%20state%3Arunning',
        },
      ],
    ],
  ),
  snapshot(
    'overview',
    'overview:1h',
    {
      span: '1h',
      verdict,
      donePerMinute: 1_204,
      failed: { n: 412, sinceDeploy: 400 },
      waiting: { n: 9_410, exact: true },
      longestWait: { since: NOW - 192_000, queue: 'billing' },
      slots: { busy: 38, all: 40 },
      ready: 9_388,
      emptyInMs: 2 * HOUR + 10 * MINUTE,
      series,
      deploys: [{ at: DEPLOY, version: 'v1.42', workers: 4 }],
      slotsByJob: [
        { job: 'charge', count: 24 },
        { job: 'thumbs', count: 8 },
        { job: 'send-email', count: 4 },
        { job: 'other', count: 2 },
      ],
      queueCount: 7,
      failing: FAILURES,
      next: NEXT,
      isEmpty: false,
      demoJob: null,
    },
    byId(QUEUES),
  ),
  snapshot('list', 'list:newest:', listFields, byId(JOBS)),
  snapshot(
    'list',
    'list:newest:state:failed label:billing',
    {
      ...listFields,
      query: 'state:failed label:billing',
      counts: null,
      reachedAt: NOW - HOUR,
      scanned: 18_400,
      newer: { n: 0, exact: true },
    },
    [],
  ),
  snapshot(
    'workflows',
    'workflows:newest:',
    { ...listFields, counts: null, histogram: null, newer: { n: 0, exact: true } },
    byId([WORKFLOW as JobRow]),
  ),
  snapshot('job', `job:${RETRYING.id}`, RETRYING),
  snapshot('job', `job:${RUNNING.id}`, RUNNING),
  snapshot(
    'job',
    `job:${WORKFLOW.id}`,
    WORKFLOW,
    STEPS.map((each) => [each.address, each] as const),
  ),
  snapshot(
    'queues',
    'queues',
    { verdict, totals: { waiting: { n: 10_580, exact: true }, running: 42, perMinute: 1_304 } },
    byId(QUEUES),
  ),
  snapshot(
    'queue',
    'queue:1h:billing',
    {
      queue: QUEUES[0] as QueueRow,
      span: '1h',
      series,
      deploys: [{ at: DEPLOY, version: 'v1.42', workers: 4 }],
      byJob: [
        { job: 'charge', running: 22, workers: 4 },
        { job: 'refund', running: 2, workers: 4 },
      ],
      limitKeys: [
        { of: 'charge', key: 'nordic', waiting: { n: 8_900, exact: true }, running: 2, max: 2 },
        { of: 'charge', key: 'iberia', waiting: { n: 214, exact: true }, running: 1, max: 2 },
      ],
      history: [{ at: DEPLOY, text: 'charge began to probe after 5 failures in a row.' }],
      failing: FAILURES.slice(0, 1),
    },
    WORKERS.slice(0, 2).map((each) => [each.id, each] as const),
  ),
  snapshot(
    'failures',
    'failures:24h',
    {
      span: '24h',
      from: NOW - DAY,
      deploy: { at: DEPLOY, version: 'v1.42', workers: 4 },
      total: 412,
      text: [
        '412 failures since the deploy at 14:02 (v1.42). ',
        { text: '400 are one cause', to: '#/failures/a1b2c3' },
        ', new since v1.42.',
      ],
      lastFailureAt: NOW - 4_000,
    },
    byId(FAILURES),
  ),
  snapshot(
    'failure',
    'failure:a1b2c3',
    {
      failure: FAILURES[0] as FailureRow,
      examples: [
        { id: (JOBS[0] as JobRow).id, at: NOW - 4_000, error },
        { id: RETRYING.id, at: NOW - 9_000, error },
      ],
      differences: [
        { what: 'payload.country', value: 'NO', failedPercent: 97, donePercent: 4 },
        { what: 'worker version', value: 'v1.42', failedPercent: 100, donePercent: 51 },
      ],
      differencesOf: { failed: 400, done: 500 },
      query: 'print:a1b2c3',
    },
    byId(JOBS.slice(0, 2)),
  ),
  snapshot('recurring', 'recurring', { total: 4 }, [
    [
      'sync-stock',
      {
        id: 'sync-stock',
        job: 'sync-stock',
        queue: 'default',
        title: null,
        words: 'every 5 minutes',
        rule: '*/5 * * * *',
        timezone: 'UTC',
        missed: 'skip',
        overlap: 'skip',
        jitterMs: 0,
        paused: false,
        pausedAt: null,
        nextAt: NOW + 233_000,
        lastAt: NOW - 67_000,
        ticks: syncTicks,
        warning: 'It runs 6 m 10 s and is due every 5 m: every second tick is skipped.',
      },
    ],
    [
      'daily-digest',
      {
        id: 'daily-digest',
        job: 'digest',
        queue: 'mail',
        title: null,
        words: 'every day at 09:00',
        rule: '0 9 * * *',
        timezone: 'Europe/Oslo',
        missed: 'once',
        overlap: 'allow',
        jitterMs: 0,
        paused: false,
        pausedAt: null,
        nextAt: NOW + 17.5 * HOUR,
        lastAt: NOW - 6.5 * HOUR,
        ticks: digestTicks,
        warning: null,
      },
    ],
    [
      'invoice-run',
      {
        id: 'invoice-run',
        job: 'invoice',
        queue: 'billing',
        title: null,
        words: 'on the last weekday of the month at 18:00',
        rule: '0 18 LW * *',
        timezone: 'UTC',
        missed: 'once',
        overlap: 'skip',
        jitterMs: 0,
        paused: false,
        pausedAt: null,
        nextAt: NOW + 12 * DAY,
        lastAt: null,
        ticks: [],
        warning: null,
      },
    ],
    [
      'cleanup',
      {
        id: 'cleanup',
        job: 'cleanup',
        queue: 'default',
        title: null,
        words: 'every hour',
        rule: '0 * * * *',
        timezone: 'UTC',
        missed: 'skip',
        overlap: 'skip',
        jitterMs: 0,
        paused: true,
        pausedAt: NOW - DAY,
        nextAt: null,
        lastAt: NOW - DAY,
        ticks: digestTicks.slice(0, 12),
        warning: null,
      },
    ],
  ]),
  snapshot(
    'recurring:',
    'recurring:daily-digest',
    {
      schedule: {
        id: 'daily-digest',
        job: 'digest',
        queue: 'mail',
        title: null,
        words: 'every day at 09:00',
        rule: '0 9 * * *',
        timezone: 'Europe/Oslo',
        missed: 'once',
        overlap: 'allow',
        jitterMs: 0,
        paused: false,
        pausedAt: null,
        nextAt: NOW + 17.5 * HOUR,
        lastAt: NOW - 6.5 * HOUR,
        ticks: digestTicks,
        warning: null,
      },
      next: [1, 2, 3, 4, 5].map((i) => NOW + (17.5 + 24 * (i - 1)) * HOUR),
      clockNote: 'It fires at 09:00 Oslo = 08:00 UTC now; from 28 March 09:00 Oslo = 07:00 UTC.',
      from: null,
      until: null,
    },
    digestTicks
      .toReversed()
      .slice(0, 8)
      .map((each) => [String(each.at), each] as const),
  ),
  snapshot('groups', 'groups', { total: 2 }, [
    [
      'campaign-42',
      {
        id: 'campaign-42',
        total: 10_000,
        unfinished: 1_774,
        counts: plainCounts({ done: 8_214, failed: 12, running: 20, ready: 1_754 }),
        sealed: true,
        completedAt: null,
        perMinute: 580,
        emptyInMs: 184_000,
      },
    ],
    [
      'import-nov',
      {
        id: 'import-nov',
        total: 640,
        unfinished: 0,
        counts: plainCounts({ done: 640 }),
        sealed: true,
        completedAt: NOW - 2.5 * HOUR,
        perMinute: null,
        emptyInMs: null,
      },
    ],
  ]),
  snapshot('group', 'group:campaign-42', {
    group: {
      id: 'campaign-42',
      total: 10_000,
      unfinished: 1_774,
      counts: plainCounts({ done: 8_214, failed: 12, running: 20, ready: 1_754 }),
      sealed: true,
      completedAt: null,
      perMinute: 580,
      emptyInMs: 184_000,
    },
    queues: [{ queue: 'mail', counts: plainCounts({ done: 8_214, failed: 12, running: 20, ready: 1_754 }) }],
  }),
  snapshot('sequences', 'sequences', { total: 4 }, [
    [
      'archive-42',
      {
        id: '01980f2c-seq1',
        job: 'archive',
        queue: 'default',
        key: 'archive-42',
        state: 'running',
        requested: null,
        done: 312,
        total: 500,
        error: null,
        item: { done: 62, total: 100 },
        createdAt: NOW - HOUR,
        perItemMs: 800,
        endsAt: NOW + 150_000,
      },
    ],
    [
      'migrate-eu',
      {
        id: '01980f2c-seq2',
        job: 'migrate',
        queue: 'default',
        key: 'migrate-eu',
        state: 'failed',
        requested: null,
        done: 8,
        total: 80,
        error: { name: 'TimeoutError', message: 'no answer after 30 s', code: null, index: 8 },
        item: null,
        createdAt: NOW - 3 * HOUR,
        perItemMs: 4_000,
        endsAt: null,
      },
    ],
    [
      'reindex',
      {
        id: '01980f2c-seq3',
        job: 'reindex',
        queue: 'default',
        key: 'reindex',
        state: 'paused',
        requested: null,
        done: 40,
        total: 41,
        error: null,
        item: null,
        createdAt: NOW - DAY,
        perItemMs: 92_000,
        endsAt: null,
      },
    ],
    [
      'empty',
      {
        id: '01980f2c-seq4',
        job: 'archive',
        queue: 'default',
        key: 'empty',
        state: 'done',
        requested: null,
        done: 0,
        total: 0,
        error: null,
        item: null,
        createdAt: NOW - DAY,
        perItemMs: null,
        endsAt: null,
      },
    ],
  ]),
  snapshot(
    'sequence',
    'sequence:01980f2c-seq2',
    {
      sequence: {
        id: '01980f2c-seq2',
        job: 'migrate',
        queue: 'default',
        key: 'migrate-eu',
        state: 'failed',
        requested: null,
        done: 8,
        total: 80,
        error: { name: 'TimeoutError', message: 'no answer after 30 s', code: null, index: 8 },
        item: null,
        createdAt: NOW - 3 * HOUR,
        perItemMs: 4_000,
        endsAt: null,
      },
      lastError: { ...error, name: 'TimeoutError', message: 'no answer after 30 s' },
      verbs: ['sequence.resume', 'sequence.reset'],
      logTail: ['copying customer 9', 'waiting for the other region'],
    },
    [7, 6, 5].map(
      (i) =>
        [
          String(i),
          {
            index: i,
            result: `{"moved":${i * 3}}`,
            reason: null,
            log: [`moved ${i * 3} rows`],
            attempt: 1,
            startedAt: NOW - HOUR + i * 4_000,
            endedAt: NOW - HOUR + i * 4_000 + 3_900,
          },
        ] as const,
    ),
  ),
  snapshot(
    'workers',
    'workers',
    {
      text: [
        '4 workers, 40 slots, 38 busy. Worker c7e8f9a0 on host web-3 has sent no heartbeat for 12 s; its 3 jobs are rescued in 3 s.',
      ],
      alive: 4,
      slots: 40,
      busy: 38,
      waiting: { n: 9_410, exact: true },
      unknownNames: [{ job: 'legacy-sync', text: 'No worker knows legacy-sync: 3 jobs wait.' }],
    },
    WORKERS.map((each) => [each.id, each] as const),
  ),
  snapshot(
    'upcoming',
    'upcoming:24h',
    {
      span: '24h',
      from: NOW,
      to: NOW + DAY,
      bucketMs: 15 * MINUTE,
      lanes: [
        { queue: 'billing', counts: [388, 120, 44, 9, ...Array.from({ length: 92 }, () => 0)] },
        { queue: 'default', counts: Array.from({ length: 96 }, () => 3) },
        { queue: 'reports', counts: Array.from({ length: 96 }, (_, i) => (i === 36 ? 1 : 0)) },
      ],
      isMore: false,
      total: 850,
    },
    NEXT.map((each) => [`${each.id ?? each.schedule}@${each.at}`, each] as const),
  ),
  snapshot('audit', 'audit:', { query: '', keptMs: 90 * DAY, problem: null }, [
    [
      '1',
      {
        at: NOW - 17_000,
        actor: 'operator',
        role: 'operator',
        verb: 'retry',
        target: '01980f2c-0002',
        link: '#/job/01980f2c-0002',
        count: 1,
        before: 'failed',
        after: 'ready',
        reason: 'card service is back',
      },
    ],
    [
      '2',
      {
        at: NOW - 65_000,
        actor: 'admin',
        role: 'admin',
        verb: 'pause',
        target: 'reports',
        link: '#/queues/reports',
        count: 1,
        before: 'open',
        after: 'paused',
        reason: null,
      },
    ],
  ]),
  snapshot('enqueue', 'enqueue', { total: 2 }, [
    ['charge', { name: 'charge', description: 'Charges a card once', queue: 'billing', categories: [], kind: 'job' }],
    ['send-email', { name: 'send-email', description: null, queue: 'mail', categories: [], kind: 'job' }],
  ]),
  snapshot('enqueue:', 'enqueue:charge', {
    job: { name: 'charge', description: 'Charges a card once', queue: 'billing', categories: [], kind: 'job' },
    schema: {
      type: 'object',
      required: ['order', 'amount'],
      properties: {
        order: { type: 'integer', description: 'the number of the order' },
        amount: { type: 'number' },
        country: { enum: ['NO', 'SE', 'DK'] },
        note: { type: 'string' },
        capture: { type: 'boolean' },
      },
    },
    lastPayload: '{"order":1043,"amount":19.9,"country":"NO"}',
  }),
]

/** What the calls of a job's page answer. */
export const PARTS: Readonly<Record<string, unknown>> = {
  payload: {
    value: {
      is: 'object',
      entries: [
        ['order', 1043],
        ['amount', 19.9],
        ['card', { is: 'tag', tag: 'redacted', text: '' }],
        ['at', { is: 'tag', tag: 'Date', text: '2026-11-15T13:30:00.000Z' }],
        ['total', { is: 'tag', tag: 'BigInt', text: '9223372036854775807' }],
        [
          'items',
          {
            is: 'list',
            items: [
              {
                is: 'object',
                entries: [
                  ['sku', 'A-1'],
                  ['n', 2],
                ],
              },
            ],
          },
        ],
        ['note', '<script>alert(1)</script>'],
      ],
    },
    text: '{\n  "order": 1043\n}',
    bytes: 412,
    isCut: false,
    isRedacted: true,
  },
  result: { value: null, text: 'null', bytes: 4, isCut: false, isRedacted: false },
  log: { attempts: [{ number: 2, lines: ['14:30:08.114 warn  gateway slow, 900 ms'] }] },
  graph: {
    nodes: [
      { id: 'p', job: 'reserve-stock', title: null, state: 'done', layer: -1 },
      { id: RETRYING.id, job: 'charge', title: 'Order 1043', state: 'retrying', layer: 0 },
      ...[1, 2, 3].map((i) => ({ id: `c${i}`, job: 'ship', title: `Parcel ${i}`, state: 'blocked', layer: 1 })),
    ],
    edges: [['p', RETRYING.id], ...[1, 2, 3].map((i) => [RETRYING.id, `c${i}`])],
    moreParents: 0,
    moreChildren: 118,
    childrenQuery: `after:${RETRYING.id}`,
  },
  lately: {
    took: wave(30, 600, 1_300, 3).map((ms, i) => ({ id: String(i), at: NOW - i * MINUTE, ms, state: 'done' })),
    p50: 812,
    p95: 1_220,
  },
  json: { text: '{}' },
  test: { text: '' },
}

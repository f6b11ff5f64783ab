import { callerQueries } from '../../src/store/postgres/queries/caller-transactions.js'
import { dayQueries } from '../../src/store/postgres/queries/days.js'
import { makeQueries } from '../../src/store/postgres/queries/queries.js'
import type { ListedBy } from '../../src/store/postgres/queries/find.js'
import { heldOf, idOf, refOf, SCHEMA, today } from './many-rows.js'

type Values = readonly (string | null)[]
/** The values of a statement; for one that a function builds, also the arguments of that function. */
type Case = Values | readonly { readonly made: readonly unknown[]; readonly values: Values }[]

/** A statement with values that find rows in tables filled by `fillTables`. */
export interface Statement {
  readonly name: string
  readonly text: string
  readonly values: Values
}

/** It reads whole tables, for checkers only. */
const CENSUS = 'readCensus'
/** Statements without a plan. */
const COMMAND = /^\s*(begin|commit|rollback|savepoint|release|set|listen|lock|create|alter|drop)\b/

/**
 * Every statement of the store, found in its query objects: a statement that is not in the tables below is an error.
 * `rows`: the number of jobs.
 */
export function allStatements(rows: number): Statement[] {
  const queries = makeQueries(SCHEMA, 'channel')
  return [
    ...statementsOf('', queries, jobCases(rows)),
    ...statementsOf('days.', dayQueries(SCHEMA), dayCases()),
    ...statementsOf('caller.', callerQueries, CALLER),
  ]
}

function statementsOf(prefix: string, queries: object, cases: Readonly<Record<string, Case>>): Statement[] {
  const made = Object.entries(queries).flatMap(([key, query]): Statement[] => {
    const name = prefix + key
    const given = cases[key]
    if (key === CENSUS || (typeof query === 'string' && COMMAND.test(query))) return []
    if (given === undefined) return [{ name, text: '', values: [] }]
    if (typeof query === 'string') return [{ name, text: query, values: given as Values }]
    return (given as Exclude<Case, Values>).map(({ made: how, values }) => ({
      name: `${name}(${how.map((each) => json(each)).join(', ')})`,
      text: (query as (...how: readonly unknown[]) => string)(...how),
      values,
    }))
  })
  const missing = made.filter(({ text }) => text === '').map(({ name }) => name)
  const unknown = Object.keys(cases).filter((key) => !Object.hasOwn(queries, key))
  if (missing.length + unknown.length > 0)
    throw new Error(
      `test/postgres/statements.ts: statements without values: ${missing.join(', ') || 'none'}; ` +
        `values without a statement: ${unknown.join(', ') || 'none'}`,
    )
  // An insert with a commit in one text cannot be explained.
  return made.filter(({ text }) => !COMMAND.test(text) && !/;\s*commit$/.test(text))
}

const json = JSON.stringify
const COUNTED = json([{ queue: 'q2', name: 'n2', done: 1, failed: 0, retried: 0, wait: '1,1,1,1,1,1', run: null }])
const list = (...refs: (bigint | number | string)[]): string => `{${refs.join(',')}}`
const FUTURE = '5000000000000'
const LAST = '9223372036854775807'
const STATES = [
  'ready',
  'running',
  'scheduled',
  'retrying',
  'blocked',
  'paused',
  'parked',
  'done',
  'failed',
  'cancelled',
] as const

/** The lists that `find` may use, with the values of its filter. */
const LISTS: readonly (readonly [readonly ListedBy[], ...string[]])[] = [
  [[{ by: 'all' }]],
  [[{ by: 'grp', value: '$4' }], 'g4'],
  [[{ by: 'key', value: '$4' }], 'k15'],
  [[{ by: 'label', value: '$4' }], 'l15'],
  [[{ by: 'failure', value: '$4' }], '0123456789abcdef'],
  ...STATES.map((state) => [[{ by: 'states', states: [state] }]] as const),
  [[{ by: 'lanes', names: '$4', queues: '$5' }], '["n16"]', '["q16"]'],
]

function jobCases(rows: number): Readonly<Record<string, Case>> {
  const held = heldOf(rows)
  const [done, ready, waiting, blocked] = [refOf(11), refOf(15), refOf(17), refOf(19)]
  const refs = list(done, ready, waiting, blocked, held.ref)
  const [ref, fence] = [String(held.ref), String(held.fence)]
  const beyond = refOf(rows * 10)
  const step = {
    ref,
    fence,
    run: 0,
    address: '000000000',
    kind: 'item',
    no: 0,
    since: 0,
    attempt: 1,
    called_at: 1,
    answered_at: 2,
  }
  const id = idOf(15)
  const given = json({ lanes: [{ lane: 2, queue: 'q2', name: 'n2' }], again: false })
  const fresh = json([
    { id: idOf(rows + 1), lane: 2, name: 'n2', priority: 0, payload: '{}', in: 0, key: 'new', slot: 'new' },
  ])
  const ended = json({
    ended: [{ ref: String(held.ref), started_at: 1, keep_ms: 1, state: 'done', attempt: 1, retries: 0, crashes: 0 }],
  })
  const asRead = (columns: object): string => json([{ ref: String(ready), version: '1', ...columns }])
  const claim = [null, 'w1', '77', '3', '10', '[]', null, null, '[]', 'true', null]
  const claimFromLanes = [
    ...claim.slice(0, 6),
    json([{ lane: 2, queue: 'q2', name: 'n2' }]),
    '9000000000000',
    '[]',
    'true',
    null,
  ]
  const end = [null, list(held.fence), list(held.ref), list(held.fence), list(1), '1', 'w1', '["{}"]', list(), COUNTED]
  return {
    now: [],
    notify: ['nobody'],
    readLanes: [json([{ queue: 'q2', name: 'n2' }])],
    addLanes: [json([{ queue: 'new', name: 'new' }])],
    checkLane: ['2', 'q2', 'n2', 'false'],
    insertAlike: [
      json({ in: 0, lane: 2, queue: 'q2', name: 'n2', priority: 0, again: false }),
      json([idOf(rows + 1)]),
      json(['{}']),
    ],
    insertOne: [null, idOf(rows + 1), '2', '0', '{}', null, 'q2', 'n2', idOf(rows + 1)],
    insertJobs: [given, fresh],
    insertMembers: [given, fresh],
    insertLabelled: [given, fresh],
    lockNames: [json(['a', 'b'])],
    tryLockNames: [json(['a', 'b'])],
    keyHolders: [json([{ name: 'n16', key: 'k15' }])],
    slotHolders: [json([{ name: 'n16', key: 'u15' }])],
    takeKey: ['n16', 'k15', ref],
    freeKeys: [json([{ name: 'n16', key: 'k15', ref: String(ready) }])],
    takeSlot: ['n16', 'u15', ref, idOf(15), null],
    freeSlots: [refs],
    holdsClaim: [ref, fence],
    readJobs: [json([idOf(11), idOf(15), idOf(rows - 1)])],
    readRefs: [refs],
    readKeyed: ['k15', 'n16'],
    listJobs: LISTS.flatMap(([lists, ...values]) =>
      (['asc', 'desc'] as const).flatMap((way) => {
        const given = ['10', ...(way === 'asc' ? ['0', LAST] : [LAST, '0']), ...values]
        const strays = `$${given.length + 1}`
        return [
          { made: [lists, way], values: given },
          { made: [lists, way, strays], values: [...given, refs] },
        ]
      }),
    ),
    searchTimes: ['1000', String(refOf(10)), LAST, '2000', String(refOf(10)), LAST, '2000', '1000', '2000'],
    countJobs: [{ made: [['state = $3']], values: ['10', refs, 'ready'] }],
    findJobs: (['asc', 'desc'] as const).map((way) => ({ made: [['state = $3'], way], values: ['10', refs, 'ready'] })),
    takeReady: [asRead({ lane: 16, sort: '15' })],
    takeWaiting: [asRead({ state: 'scheduled' })],
    takeHistory: [asRead({}), null],
    takeFreeReady: [asRead({ lane: 16, sort: '15' })],
    takeFreeWaiting: [asRead({ state: 'scheduled' })],
    takeFreeHistory: [asRead({}), null],
    lockLease: [fence],
    takeHeld: [ref, fence],
    forgetLeases: [list(held.ref)],
    putReady: [json([{ lane: 2, sort: 1, ref: String(beyond) }])],
    putWaiting: [json([{ ref: String(beyond), lane: 2, state: 'scheduled', due_at: 1 }])],
    putExpiring: [json([{ expires_at: 1, ref: String(beyond) }])],
    updateJobs: [json([{ ref: String(ready), due_at: 1, lane: 2, priority: 0, suspect: false, payload: '{}' }])],
    deleteJobs: [refs],
    parentsById: [json([idOf(11), idOf(15)])],
    parentsByRef: [refs],
    parentsByKey: [json([{ name: 'n16', key: 'k15' }])],
    holdParents: [refs],
    newRefs: [json([idOf(15)]), String(refOf(10))],
    addLinks: [list(ready), list(waiting), '["wait"]', '{null}'],
    putAfter: [json([{ ref: String(ready), after: '[]' }])],
    haveLinks: [refs],
    dropLinks: [refs],
    addTodos: [json([{ parent: String(ready), id: idOf(15), what: 'recheck' }])],
    lockJobs: [refs],
    noteForgotten: [json([{ ref: String(refOf(18)), what: 'gone' }])],
    noteParked: [refs],
    nextTodos: ['10'],
    dropTodos: [list(1, 2, 3)],
    forgottenAmong: [refs],
    anyTodo: [],
    markParents: [refs],
    takeReadyRows: [refs],
    takeWaitingRows: [refs],
    lockEnds: [refs],
    lockFreeLeases: [list(held.fence)],
    markLeases: [list(held.fence)],
    movedLinks: [json([{ parent: String(refOf(18)), policies: 'wait cancel' }]), '10'],
    lockChildren: [refs],
    anyChildren: [refs],
    resolveLinks: [list(refOf(18)), list(blocked)],
    freeJobs: [refs],
    lockLinking: [],
    linksAbove: [refs],
    putRequest: [ref, 'cancel', '', null, null],
    markRequested: [fence],
    dropRequests: [refs],
    requestsOf: [refs],
    readRequests: [],
    readPause: [null, 'p1'],
    putPause: ['q2', null, '1'],
    addAudit: [
      '1',
      json([
        {
          actor: 'ada',
          role: null,
          verb: 'retry',
          target: 'job 1',
          count: 1,
          before: 'failed',
          after: 'ready',
          reason: null,
          keep: 1,
        },
      ]),
    ],
    trimAudit: ['1', '20'],
    readAudit: ['1', json({ actor: 'ada', verb: null, target: null, since: null, cursor: null }), '50'],
    dropPause: ['p1'],
    anyHeld: [],
    readLimited: [
      null,
      'w1',
      json(['n2']),
      '[]',
      '10',
      '100',
      json(['n1', 'n2']),
      null,
      json(['full']),
      json([{ name: 'n2', max: 5 }]),
    ],
    lockLimits: [json(['job n2'])],
    limitedSuspects: [list(18), '10'],
    limitsInUse: [json(['job n2']), json(['job n2']), '1'],
    takeLimited: [
      'w1',
      '79',
      '1',
      json([{ no: 0, ref: String(ready), turn: 2, sort: 1 }]),
      '1',
      json([{ bucket: 'job n2', ref: String(ready) }]),
      json([{ bucket: 'job n2', ref: String(ready), step: 1, weight: 1, until: 9 }]),
      json([{ lane: 2, last: 2 }]),
      json([{ scope: 'job n2', version: 1 }]),
    ],
    takeLimitedSuspect: ['w1', '80', '1', String(refOf(17)), '[]', '[]'],
    dropSlots: [],
    dropWindows: ['1'],
    shortenWindows: [json([{ bucket: 'job n2', until: 1 }])],
    putQueueLimits: ['q2', '1', null, null, '1'],
    dropQueueLimits: ['new'],
    readQueueLimits: [],
    addOutage: ['q2', 'n2'],
    lockOutage: ['q2', 'n2'],
    putOutage: ['2', 'closed', '5', '1', '1'],
    dropOutage: ['3'],
    closedOutages: [],
    holdRetries: ['1', '10'],
    heldRange: ['2'],
    takeProbe: ['2', '1', '2'],
    releaseProbe: ['2', '1'],
    releaseHeld: ['2', '10'],
    someHeld: ['2'],
    readOutages: ['q2'],
    sweepSlots: [null, 'n2', 'u', '40', '10'],
    promoteJobs: [null, '10'],
    nextTimes: ['1'],
    expiredJobs: ['4000000000020', '10'],
    sweepExpiring: ['4000000000020', '-1', '-1', '10'],
    pruneDone: [FUTURE, '10', '0'],
    pruneJobs: [FUTURE, '10', '0'],
    nextPrune: ['0'],
    commitWith: [{ made: [idOf(1), ''], values: [] }],
    voidReceipt: [idOf(rows + 1)],
    readReceipt: [idOf(5)],
    dropReceipts: [list(idOf(5))],
    sweepReceipts: [idOf(5), '10'],
    addWorker: ['w9', '', '1', null, '15000', null, '{}'],
    reportWorker: ['w1', '{}'],
    listWorkers: ['', '50'],
    listDeadWorkers: ['', '1', '50'],
    runningOf: [json(['w1', 'w2'])],
    countAttempts: [null, COUNTED],
    readStats: [json([{ spanMs: 3_600_000, from: 0, to: 10 }]), null, null, '0', '10', 'true', 'false'],
    firstStatMove: [],
    foldAlone: [],
    takeStatMoves: ['10'],
    readBuckets: [json([{ queue: 'q2', name: 'n2', span: 60_000, at: 2 }])],
    putBuckets: [json([{ queue: 'q2', name: 'n2', span: 60_000, at: 2, done: 1, failed: 0, retried: 0 }])],
    trimStats: ['60000', '2'],
    readDayFailures: [json([{ queue: 'q2', name: 'n2', at: 2 }])],
    putFailures: [
      json([
        {
          queue: 'q2',
          name: 'n2',
          at: 2,
          fingerprint: 'f',
          error: 'e',
          place: '',
          count: 1,
          first_seen: 1,
          last_seen: 1,
          samples: '[]',
        },
      ]),
    ],
    trimFailures: ['6'],
    readFailures: [null, null, '395'],
    readCandidate: [ref],
    readFailure: [null, null, '395', 'f10'],
    firstSeen: [json(['f10', 'f15'])],
    countQueues: ['10'],
    queuePauses: [],
    queueOutages: [],
    changeTriggers: [],
    takeConsumer: ['mirror', 'r1'],
    addConsumer: ['other', 'r1', '0'],
    readConsumer: ['mirror', 'r1'],
    lastChange: [],
    changeWriters: [],
    changesAfter: ['0', '1000', '10'],
    saveRead: ['mirror', 'r1', '5'],
    dropConsumer: ['mirror'],
    trimChanges: ['10', '10'],
    whyParents: [list(refOf(1), refOf(2)), '1000'],
    whyTurns: [list(refOf(1), refOf(2))],
    whySlots: ['job n2'],
    whyStarts: ['job n2', '1'],
    whyAhead: ['n2', null, null, '2', '5', '7', '1001'],
    whyHolders: [list(refOf(1), refOf(2))],
    whyWaits: [list(refOf(1), refOf(2))],
    oldestTransaction: ['300000'],
    harmfulSettings: [],
    schemaVersion: [],
    idleSlot: ['1073741824'],
    listGroups: ['g1', '50'],
    listSequences: [LAST, '50'],
    beat: ['w1'],
    dropWorker: ['w1'],
    endWorker: ['w1', '0', null],
    lockWorker: ['w1', '0'],
    isWorker: ['w1'],
    markBlocking: ['1', 'w1'],
    readWorkers: [],
    claimJobs: claim,
    claimJobsByRow: claim,
    claimFromLanes,
    claimFromLanesByRow: claimFromLanes,
    filledLanes: ['0', '500', null],
    voidClaims: ['w1', list(991, 992), null],
    claimSuspects: [null, 'w1', '78', json([{ ref: String(refOf(17)), lane: 18, queue: 'q18', name: 'n18' }])],
    waitingSuspects: [null, 'w1', '10'],
    endQuarantine: [fence, 'w1'],
    confirmJobs: [list(held.fence), null],
    reportJobs: [json([{ ref, fence, started_at: 1, progress: null }])],
    dropReports: [refs],
    endPlain: end,
    endPlainAmong: end,
    endForgotten: [list(held.fence), list(held.ref), list(held.fence), list(), ref, ref, null, COUNTED],
    lockLeases: [list(held.fence)],
    lockLeasesOf: ['w1'],
    ownedJobs: [json([{ ref, fence }])],
    writtenBefore: [json([{ ref: String(done), state: 'done', worker: 'w1', started_at: 1 }])],
    appendHistory: [ended],
    endOne: [ended],
    forgetJob: [ref],
    shareLease: [ref, fence],
    requeueJobs: [json({ back: [{ ref, fence, state: 'ready', attempt: 1, retries: 0, crashes: 0, suspect: false }] })],
    closeLeases: [list(held.fence)],
    dropLeases: [list(held.fence)],
    readLeases: ['w1'],
    readSchedule: ['s10'],
    listSchedules: ['s10', '10'],
    addSchedule: ['new', '', '1', null, '1'],
    putSchedule: ['', '1', null, '1', 's10', '1'],
    lockSchedule: ['s10', '1'],
    moveSchedule: [null, '1', '1', '[]', 's10'],
    dropSchedule: ['s10'],
    dropTicks: ['s10'],
    dueSchedules: ['4000000000020', '10'],
    nextSchedule: [null],
    firedTicks: ['s10', json([{ at: 10, by_hand: false }])],
    putTicks: ['s10', json([{ at: 11, by_hand: false, outcome: 'skipped', fired_at: 1 }])],
    trimTicks: ['s10', '5'],
    readTicks: ['s10', FUTURE, '10'],
    waitingDue: ['4000000000060', '10'],
    waitingBins: ['4000000000000', '1000', '4000000000060', '10'],
    readyDue: ['10'],
    shareGroups: [json(['g5', 'g10'])],
    addGroups: [json(['new'])],
    keepGroups: [json(['g5'])],
    isMember: [ref, 'g5'],
    sealGroup: [null, null, 'g5'],
    countMoves: [json([{ group: 'g5', queue: 'q1', state: 'done', members: 1 }])],
    readGroup: ['g5'],
    foldMoves: ['10'],
    whenDone: ['g5'],
    lockGroup: ['g5'],
    isComplete: ['g5'],
    completeGroup: ['g10', null],
    sweepGroups: [null, 'g5', '10', '1'],
    addList: [id, '3', null],
    findList: [id],
    addItems: ['5', '0', json([['1', null]])],
    addLeftover: [null, null, '5', null, '0'],
    dropLeftover: ['5'],
    hastenLeftover: [id],
    markSequence: [id],
    putWorkflow: [ref, null],
    lockWorkflow: [id],
    startWorkflow: [ref],
    resetWorkflow: ['["!start"]', ref],
    clearAttempts: [ref, '0'],
    readSequence: [id],
    readOutput: ['000000000', id, '100'],
    itemsOfJob: [id, '0', '100', '1048576'],
    readPositions: [`{${ref}}`],
    readItems: ['5', '0', '100', '1048576'],
    appendStep: [null, json([step]), 'q1'],
    settleSteps: [json([step])],
    isAnswered: [ref, '0', '000000000'],
    endStreak: [ref],
    readBoundary: [null, ref, '5', 'q1'],
    takeClaimed: [ref, '5'],
    sweepLeftover: [null, '10'],
    dropSwept: ['5'],
    ensureWorkflow: [id],
    ensureWorkflows: [`{${ref}}`],
    lockWorkflows: [`{${ref}}`],
    lockFreeWorkflows: [`{${ref}}`],
    workflowsAmong: [json([id])],
    holdJob: [id],
    readWorkflow: [id],
    countAnswers: ['0', ref],
    warnedSteps: [ref, '0', '100'],
    readSteps: [ref, '0', 'false', '-1', '10'],
    listInbox: [ref, '0', '100'],
    findStep: [ref, '0', '000000000'],
    openSteps: [ref, '0'],
    claimLogs: [json([{ ref, fence: 5 }])],
    findUnbegun: [`{${ref}}`],
    readLogs: [`{${ref}}`, '{0}'],
    readInboxes: [`{${ref}}`],
    appendSteps: [json([{ ref, fence: 5 }]), json([step]), json([{ ref, number: 1 }])],
    shareLeases: [json([{ ref, fence: 5 }])],
    suspend: [json([{ ref, waits: '[]', last_fence: 5 }])],
    endWaits: [ref],
    restartWorkflow: [ref, '1', null],
    putInput: [ref, '{}', null, null],
    putForgetFrom: [ref, '1'],
    pauseWorkflow: ['blocked', ref],
    resumeWorkflow: [ref],
    forgottenSteps: [ref, '0', '1', '1', '1'],
    forgetSteps: [ref, '0', '1', '1', '1'],
    keepNumbers: [ref],
    retryWorkflow: [null, null, ref],
    putCancel: [ref, 'why', null],
    dropCancel: [ref],
    putEvent: [ref, 'go', 'i1', '{}', null, null],
    isInboxFull: [ref, '9999'],
    isWaitOver: [ref, '["event:go"]'],
    wakeWorkflows: [null, `{${ref}}`],
    stillSuspended: [`{${ref}}`],
    dueWakes: ['4000000000020', '10'],
    endWakes: [`{${ref}}`],
    noteWake: [ref],
    addCall: [id, ref, null],
    markCalled: [id],
    dropCall: [ref, id],
    putCallEnd: [ref, id, '{}', null],
    calledAmong: [`{${ref}}`],
    noteCallEnds: [null, json([{ parent: ref, id, what: 'done', result: '1' }])],
    callersOf: [`{${ref}}`, '10'],
    notedEnds: [`{${ref}}`],
    deliverCalls: [json([{ parent: ref, id, at: 1 }]), `{${ref}}`, `{${ref}}`],
  }
}

/** Statements on a day and on rows of it. Statements that move or drop a whole day read it completely, and are left out: `null`. */
function dayCases(): Readonly<Record<string, Case>> {
  const slice = [String(refOf(10)), String(refOf(10) + 100_000n), FUTURE, '10']
  const empty = today() + 1
  return {
    readOwner: [],
    scanSlice: slice,
    pruneSlice: slice,
    lastNumber: [],
    sweepRevived: [{ made: [today() - 30], values: [] }],
    tryAlone: [],
    addSummaries: [json([{ name: 'jobs_rest', next: 0 }]), '10'],
    readParts: [],
    isTaken: [{ made: ['jobs', empty], values: [] }],
    create: [{ made: ['jobs', empty], values: [] }],
    give: [{ made: ['jobs', empty, 'postgres'], values: [] }],
    attach: [{ made: ['jobs', empty], values: [] }],
    detach: [{ made: ['jobs', empty], values: [] }],
    drop: [{ made: ['jobs', empty], values: [] }],
    moveJobs: [{ made: [empty], values: ['{}', '0'] }],
    moveHistory: [{ made: [empty], values: [] }],
    moveLabels: [{ made: [empty], values: [] }],
    dropLabels: [{ made: [empty], values: [] }],
    noteGone: [{ made: [empty], values: [] }],
    noteLongWork: [{ made: [empty], values: [] }],
  }
}

const CALLER: Readonly<Record<string, Case>> = {
  leaveMark: [`${SCHEMA}`, `${SCHEMA}.identity`],
  findMark: [
    { made: [`${SCHEMA}.identity`, true], values: [] },
    { made: [`${SCHEMA}.identity`, false], values: [] },
  ],
}

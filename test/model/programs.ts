import fc from 'fast-check'
import { GROUPS } from './pair.js'
import type { EventName } from './bodies.js'
import type { ActEnd, Body, Deed, Statement } from './reference/course.js'
import { WORKFLOW } from './reference/state.js'
import type { HeldEnd } from './reference/workflows.js'
import type { Outcome } from './reference/attempts.js'
import type { BulkVerb } from './reference/bulk.js'
import type { GroupVerb } from './reference/groups.js'
import type { SequenceVerb } from './reference/sequences.js'
import type { Enqueue, Leaving, ParentPolicy } from './reference/state.js'
import type { Filter, Given, InsertStep, JobVerb, ScheduleSpec, Step } from './steps.js'

/** Few names, keys and values of each kind, so that they meet often. */
const QUEUES = ['default', 'mail']
const name = fc.constantFrom('one', 'one', 'two', 'short', 'unkept')
const key = fc.constantFrom('a', 'b')
const at = fc.nat(40)
const ms = fc.constantFrom(0, 0, 0, 1, 5_000, 3_600_000)
const queue = fc.constantFrom(...QUEUES)
const group = fc.constantFrom(...GROUPS)
const priority = fc.integer({ min: -2, max: 2 })
const policy = fc.constantFrom<ParentPolicy>('wait', 'cancel', 'run')
const onDuplicate = fc.constantFrom('return' as const, 'reject' as const, 'replace' as const)
const unique = fc.record(
  {
    value: fc.constantFrom('u', 'v'),
    forMs: fc.constantFrom(5_000, 3_600_000),
    while: fc.constantFrom('unfinished' as const, 'waiting' as const),
    onDuplicate: fc.constantFrom('ignore' as const, 'reject' as const, 'replace' as const, 'reschedule' as const),
  },
  { requiredKeys: ['value'] },
)

const OPTIONS = ['queue', 'priority', 'inMs', 'expiresMs', 'key', 'onDuplicate', 'unique', 'group', 'after'] as const

/** Options of an enqueue: mostly few at once, so that each is met in many programs. */
const options: fc.Arbitrary<Enqueue> = fc
  .tuple(
    fc.subarray([...OPTIONS], { maxLength: 4 }),
    fc.record({
      queue,
      priority,
      inMs: ms,
      expiresMs: fc.constantFrom(5_000, 7_200_000),
      key,
      onDuplicate,
      unique,
      group,
      after: fc.array(at, { minLength: 1, maxLength: 3 }),
      onParentFailure: policy,
    }),
  )
  .map(([names, all]) => {
    const chosen = new Set<string>(names)
    if (!chosen.has('key')) chosen.delete('onDuplicate')
    if (chosen.has('after')) chosen.add('onParentFailure')
    return Object.fromEntries(Object.entries(all).filter(([option]) => chosen.has(option))) as Enqueue
  })
const given: fc.Arbitrary<Given> = fc.tuple(name, options).map(([job, rest]) => ({ ...rest, name: job }))

const actEnd = fc.constantFrom<ActEnd>('return', 'return', 'throw', 'abort')
const eventName = fc.constantFrom<EventName>('x', 'y')
const deed: fc.Arbitrary<Deed> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ verb: fc.constant('step' as const), ends: fc.constant('held' as const) }) },
  {
    weight: 3,
    arbitrary: fc.record({
      verb: fc.constant('step' as const),
      ends: fc.array(actEnd, { minLength: 1, maxLength: 3 }),
    }),
  },
  { weight: 2, arbitrary: fc.record({ verb: fc.constant('sleep' as const), ms }) },
  {
    weight: 3,
    arbitrary: fc.record({
      verb: fc.constant('wait' as const),
      event: eventName,
      ms: fc.constantFrom(null, null, 0, 5_000, 3_600_000),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      verb: fc.constantFrom('call' as const, 'call' as const, 'enqueue' as const),
      name,
      key: fc.constantFrom(null, null, 'a'),
      inMs: fc.constantFrom(0, 0, 5_000),
      leaves: fc.boolean(),
      body: fc.constant(null),
    }),
  },
)
/** Every branch begins with a call: the order of branches that end in the turn in which they begin is not promised. */
const branchOf = (inner: fc.Arbitrary<Statement>): fc.Arbitrary<Body> =>
  fc.tuple(deed, fc.array(inner, { maxLength: 2 })).map(([first, rest]) => [first, ...rest])
/** What undoes something is called when several branches are ended at once, and then steps alone have no order among each other. */
const undo: fc.Arbitrary<Body> = fc.constantFrom<Body>(
  [],
  [{ verb: 'step', ends: ['return'] }],
  [{ verb: 'step', ends: 'held' }],
)
const { statement } = fc.letrec<{ statement: Statement }>((tie) => ({
  statement: fc.oneof(
    { maxDepth: 2, depthIdentifier: 'body', withCrossShrink: true },
    { weight: 6, arbitrary: deed },
    {
      weight: 2,
      arbitrary: fc.record({
        verb: fc.constantFrom('all' as const, 'each' as const, 'race' as const),
        branches: fc.array(branchOf(tie('statement')), { minLength: 1, maxLength: 3 }),
      }),
    },
    {
      weight: 1,
      arbitrary: fc.record({
        verb: fc.constant('try' as const),
        body: fc.array(tie('statement'), { maxLength: 2 }),
      }),
    },
    {
      weight: 1,
      arbitrary: fc.record({ verb: fc.constant('cleanup' as const), body: branchOf(tie('statement')), undo }),
    },
    { weight: 1, arbitrary: fc.constant<Statement>({ verb: 'throw' }) },
  ),
}))
/** Beside no other branch: after a crash, what other branches have recorded decides which version it was. */
const versioned: fc.Arbitrary<Statement> = fc.record({
  verb: fc.constant('version' as const),
  body: fc.array(statement, { maxLength: 2 }),
})
/** What a run did whose log is gone is not known, so one that is restarted has no branches. */
const restarted: fc.Arbitrary<Body> = fc
  .array(deed, { maxLength: 3 })
  .map((statements) => [...statements, { verb: 'restart' }])
const plainBody: fc.Arbitrary<Body> = fc
  .tuple(fc.array(fc.oneof({ weight: 9, arbitrary: statement }, { weight: 1, arbitrary: versioned }), { maxLength: 4 }))
  .map(([statements]) => statements)
const body = fc.oneof({ weight: 6, arbitrary: plainBody }, { weight: 1, arbitrary: restarted })

/** Options that another part of the call decides. */
const without = <G extends Enqueue>(all: G, ...names: readonly (keyof Enqueue)[]): G =>
  Object.fromEntries(Object.entries(all).filter(([option]) => !names.includes(option as keyof Enqueue))) as G

const enqueueStep = fc.record({ step: fc.constant('enqueue' as const), given })
const scheduleStep = fc
  .record({ step: fc.constant('schedule' as const), key, inMs: ms, given })
  .map((step) => ({ ...step, given: without(step.given, 'key', 'onDuplicate', 'inMs') }))
const manyStep = fc
  .record({ step: fc.constant('many' as const), name, items: fc.array(options, { maxLength: 4 }), onDuplicate })
  .map((step) => ({ ...step, items: step.items.map((item) => without(item, 'onDuplicate')) }))
const flowStep = fc
  .record({
    step: fc.constant('flow' as const),
    nodes: fc.array(fc.record({ given, afterNodes: fc.array(fc.nat(3), { maxLength: 2 }) }), {
      minLength: 1,
      maxLength: 4,
    }),
    onDuplicate,
  })
  .map((step) => ({
    ...step,
    nodes: step.nodes.map((node) => ({ ...node, given: without(node.given, 'onDuplicate') })),
  }))
/** No caller waits for a refusal of the job that follows a group. */
const whenDone = given.map((all): Given => {
  const { unique: slot, ...rest } = without(all, 'group', 'onDuplicate')
  const isRefused = slot === undefined || slot.onDuplicate === 'reject'
  return isRefused ? rest : { ...rest, unique: slot }
})
const sealStep = fc.record({ step: fc.constant('seal' as const), group, whenDone: fc.option(whenDone) })
const workflowStep = fc.record({
  step: fc.constant('workflow' as const),
  given: fc.tuple(options, body).map(([rest, code]): Given => ({ ...rest, name: WORKFLOW, body: code })),
})
const sequenceStep = fc.record({
  step: fc.constant('sequence' as const),
  total: fc.nat(3),
  start: fc.boolean(),
  given: given.map((all) => without(all, 'after', 'onParentFailure', 'inMs', 'expiresMs', 'unique')),
})
const inserts: fc.WeightedArbitrary<InsertStep>[] = [
  { weight: 10, arbitrary: enqueueStep },
  { weight: 4, arbitrary: scheduleStep },
  { weight: 2, arbitrary: manyStep },
  { weight: 2, arbitrary: flowStep },
  { weight: 2, arbitrary: sealStep },
  { weight: 4, arbitrary: sequenceStep },
  { weight: 6, arbitrary: workflowStep },
]

const outcome: fc.Arbitrary<Outcome> = fc.oneof(
  { weight: 3, arbitrary: fc.constant({ kind: 'return' as const }) },
  { weight: 2, arbitrary: fc.constant({ kind: 'throw' as const }) },
  { weight: 1, arbitrary: fc.constant({ kind: 'abort' as const }) },
  { weight: 1, arbitrary: fc.constantFrom(0, 5_000).map((delay) => ({ kind: 'snooze' as const, ms: delay })) },
)

const HOUR = 3_600_000
const scheduleSpec: fc.Arbitrary<Omit<ScheduleSpec, 'isCron'>> = fc.record({
  given: given.map((all) => without(all, 'inMs')),
  everyMs: fc.constantFrom(HOUR / 3, HOUR / 2),
  fromMs: fc.constantFrom(null, null, HOUR),
  untilMs: fc.constantFrom(null, null, 3 * HOUR),
  missed: fc.constantFrom('skip' as const, 'once' as const, 'all' as const),
  overlap: fc.constantFrom('allow' as const, 'skip' as const, 'wait' as const, 'cancel' as const),
})
/** One schedule by a cron text, and one by `every`, so that they have no tick at the same time: their order is not promised. */
const id = fc.constantFrom('cron', 'every')
const recurring = fc
  .tuple(id, scheduleSpec)
  .map(([of, spec]) => ({ step: 'recurring' as const, id: of, spec: { ...spec, isCron: of === 'cron' } }))

/** At most two conditions, so that there are pages to turn. */
const filter: fc.Arbitrary<Filter> = fc
  .tuple(
    fc.subarray(['states', 'queues', 'names', 'group', 'key'] as const, { maxLength: 2 }),
    fc.record({
      states: fc.subarray(
        ['scheduled', 'ready', 'running', 'retrying', 'blocked', 'paused', 'done', 'failed', 'cancelled'] as const,
        { minLength: 1 },
      ),
      queues: fc.subarray(QUEUES, { minLength: 1 }),
      names: fc.subarray(['one', 'two'], { minLength: 1 }),
      group,
      key,
    }),
  )
  .map(([names, all]) => Object.fromEntries(names.map((each) => [each, all[each]])))

type Plain = Step extends infer Each ? (Each extends Step ? Omit<Each, 'by'> : never) : never
const weighted = <T extends Plain>(weight: number, name: T['step'], rest: object): fc.WeightedArbitrary<Plain> => ({
  weight,
  arbitrary: fc.record({ step: fc.constant(name), ...rest }) as unknown as fc.Arbitrary<Plain>,
})

const plain: fc.WeightedArbitrary<Plain>[] = [
  ...(inserts as fc.WeightedArbitrary<Plain>[]),
  weighted(3, 'transaction', {
    steps: fc.array(fc.oneof(...inserts), { minLength: 1, maxLength: 3 }),
    commits: fc.boolean(),
  }),
  weighted(3, 'child', { attempt: at, given }),
  weighted(1, 'unschedule', { name, key }),
  weighted(9, 'command', { verb: fc.constantFrom<JobVerb>('cancel', 'pause', 'resume', 'retry', 'delete'), at }),
  weighted(6, 'sequenceVerb', {
    verb: fc.constantFrom<SequenceVerb>('start', 'pause', 'resume', 'cancel', 'reset'),
    at,
  }),
  weighted(8, 'endStep', {
    at,
    end: fc.constantFrom<HeldEnd>('return', 'return', 'return', 'throw', 'abort', 'snooze'),
  }),
  weighted(6, 'send', { at, event: eventName, id: fc.constantFrom(null, null, 'i') }),
  weighted(2, 'workflowVerb', { verb: fc.constantFrom('end', 'fresh'), at }),
  weighted(3, 'edit', { at, change: fc.record({ priority, queue, inMs: ms }, { requiredKeys: [] }) }),
  weighted(3, 'addParents', { at, parents: fc.array(at, { minLength: 1, maxLength: 2 }), policy }),
  weighted(1, 'pauseQueue', { queue, forMs: fc.constantFrom(null, 5_000, HOUR) }),
  weighted(1, 'resumeQueue', { queue }),
  weighted(2, 'group', { group, verb: fc.constantFrom<GroupVerb>('pause', 'resume', 'cancel', 'retryFailed') }),
  weighted(2, 'all', {
    verb: fc.constantFrom<BulkVerb>('retryAll', 'cancelAll', 'deleteAll', 'pauseAll', 'resumeAll'),
    filter: fc.oneof(
      queue.map((of) => ({ queue: of })),
      name.map((job) => ({ job })),
      group.map((of) => ({ group: of })),
      key.map((of) => ({ key: of })),
    ),
    page: fc.constantFrom(1, 2, 500),
  }),
  weighted(10, 'begin', { queue }),
  weighted(8, 'finish', { attempt: at, outcome }),
  weighted(8, 'run', { queue, outcome }),
  weighted(1, 'settleIn', { attempt: at, commits: fc.boolean() }),
  weighted(1, 'transact', { attempt: at, given, throws: fc.boolean() }),
  weighted(1, 'loseClaim', { queue }),
  weighted(3, 'kill', {
    mill: fc.constantFrom(1, 2),
    how: fc.constantFrom<Leaving>('killed', 'proven', 'frozen', 'stopped'),
  }),
  weighted(2, 'restart', { mill: fc.constantFrom(1, 2) }),
  weighted(1, 'crashes', { mill: fc.constantFrom(1, 2), queue, times: fc.integer({ min: 1, max: 6 }) }),
  { weight: 2, arbitrary: recurring },
  weighted(1, 'loseLease', { mill: fc.constantFrom(1, 2), queue, outcome }),
  weighted(2, 'recurs', { id, verb: fc.constantFrom('pause', 'resume', 'runNow', 'delete') }),
  weighted(1, 'backfill', { id, backMs: fc.constantFrom(HOUR, 2 * HOUR) }),
  weighted(6, 'advance', { ms: fc.constantFrom(1, 4_999, 10_000, 30_000, HOUR) }),
  weighted(1, 'oversleep', { ms: fc.constantFrom(10_000, HOUR, 2.5 * HOUR) }),
  weighted(1, 'prune', {}),
  weighted(2, 'find', { filter, page: fc.integer({ min: 1, max: 4 }), order: fc.constantFrom('newest', 'oldest') }),
]

const step: fc.Arbitrary<Step> = fc
  .tuple(fc.nat(2), fc.oneof({ withCrossShrink: true }, ...plain))
  .map(([by, rest]) => ({ by, ...rest }) as Step)

/** Every program has these; of the other kinds it has some, so that those meet more often. */
const ALWAYS = ['enqueue', 'begin', 'finish', 'run', 'advance', 'command'] as const
const SOMETIMES = [
  ...([
    'sequence',
    'sequenceVerb',
    'workflow',
    'send',
    'workflowVerb',
    'schedule',
    'many',
    'flow',
    'seal',
    'transaction',
    'child',
    'unschedule',
    'edit',
    'addParents',
  ] as const),
  ...([
    'pauseQueue',
    'resumeQueue',
    'group',
    'all',
    'settleIn',
    'transact',
    'loseClaim',
    'kill',
    'restart',
    'crashes',
  ] as const),
  ...(['loseLease', 'recurring', 'recurs', 'backfill', 'oversleep', 'prune', 'find'] as const),
] satisfies readonly Step['step'][]

/**
 * The same step with a job and a queue that have limits, and a job that has a rate. A sequence stays as it is: with a rate it is
 * refused, and one without items begins no handler.
 */
function withLimits<Each extends { readonly step: string }>(each: Each): Each {
  if (each.step === 'sequence' || each.step === 'workflow') return each
  if ('steps' in each) return { ...each, steps: (each.steps as readonly InsertStep[]).map(withLimits) }
  const named = JSON.stringify(each).replaceAll('"two"', '"gated"').replaceAll('"unkept"', '"paced"')
  return JSON.parse(named.replaceAll('"mail"', '"tight"')) as Each
}

/** About a quarter of all steps is of a kind that the program does not have. */
const KEPT = 0.75

/** Programs of this many steps on average: a failing one is shrunk to a few. */
export const programs = (length: number): fc.Arbitrary<Step[]> =>
  fc
    .tuple(
      fc.subarray(SOMETIMES),
      fc.nat(2),
      fc.array(step, { maxLength: Math.round((2 * length) / KEPT), size: 'max' }),
    )
    .map(([some, limits, steps]) => {
      const kinds = new Set<string>([...ALWAYS, ...some])
      if (kinds.has('workflow')) kinds.add('endStep')
      const kept = steps.filter((each) => kinds.has(each.step))
      return limits === 0 ? kept.map(withLimits) : kept
    })

import type { Statement } from './reference/course.js'
import { WORKFLOW } from './reference/state.js'
import type { Step } from './steps.js'

const EVERY = {
  everyMs: 1_200_000,
  isCron: false,
  fromMs: null,
  untilMs: null,
  missed: 'once',
  overlap: 'allow',
} as const

const HELD: Statement = { verb: 'step', ends: 'held' }
const SLEEP: Statement = { verb: 'sleep', ms: 5_000 }
const CALL: Statement = { verb: 'call', name: 'short', key: null, inMs: 5_000, leaves: false, body: null }

/** Programs that once differed from the model, by the fault of a store or of a mill that they found, as short as they can be. */
export const CASES: { readonly [found: string]: readonly Step[] } = {
  'a running job that a stop gives back was cancelled as expired before it began': [
    { by: 2, step: 'enqueue', given: { name: 'one', expiresMs: 5_000 } },
    { by: 2, step: 'begin', queue: 'default' },
    { by: 0, step: 'advance', ms: 10_000 },
    { by: 0, step: 'kill', mill: 2, how: 'stopped' },
    { by: 0, step: 'advance', ms: 10_000 },
  ],
  'a tick cancelled the job of an earlier one with the keep time of another job': [
    { by: 0, step: 'recurring', id: 'every', spec: { ...EVERY, given: { name: 'one' } } },
    { by: 0, step: 'advance', ms: 3_600_000 },
    { by: 0, step: 'recurring', id: 'every', spec: { ...EVERY, given: { name: 'short' }, overlap: 'cancel' } },
    { by: 0, step: 'advance', ms: 3_600_000 },
  ],
  'two nodes of a flow with one key made a job that waited for itself': [
    {
      by: 0,
      step: 'flow',
      nodes: [
        { given: { name: 'one', key: 'a' }, afterNodes: [1] },
        { given: { name: 'one', key: 'a' }, afterNodes: [] },
      ],
      onDuplicate: 'return',
    },
  ],
  'two nodes of a flow with one key made two jobs that waited for each other': [
    {
      by: 0,
      step: 'flow',
      nodes: [
        { given: { name: 'one', key: 'a' }, afterNodes: [1] },
        { given: { name: 'two' }, afterNodes: [2] },
        { given: { name: 'one', key: 'a' }, afterNodes: [] },
      ],
      onDuplicate: 'return',
    },
  ],
  'the job of a tick that its parent cancelled was kept for ever': [
    { by: 0, step: 'enqueue', given: { name: 'one' } },
    { by: 0, step: 'command', verb: 'cancel', at: 0 },
    {
      by: 0,
      step: 'recurring',
      id: 'every',
      spec: { ...EVERY, given: { name: 'one', after: [0], onParentFailure: 'cancel' } },
    },
    { by: 0, step: 'advance', ms: 3_600_000 },
  ],
  'a tick whose job would wait for itself stopped its schedule': [
    {
      by: 0,
      step: 'recurring',
      id: 'every',
      spec: { ...EVERY, given: { name: 'one', unique: { value: 'u', onDuplicate: 'reschedule' } }, overlap: 'wait' },
    },
    { by: 0, step: 'advance', ms: 3_600_000 },
  ],
  'a tick whose job would wait for the retry of a job with its key stopped its schedule': [
    { by: 0, step: 'enqueue', given: { name: 'one', key: 'a' } },
    { by: 0, step: 'command', verb: 'cancel', at: 0 },
    {
      by: 0,
      step: 'recurring',
      id: 'every',
      spec: { ...EVERY, given: { name: 'one', key: 'a', group: 'g', after: [0], onParentFailure: 'wait' } },
    },
    { by: 0, step: 'advance', ms: 3_600_000 },
  ],
  'a node of a flow named a parent that another job stood in for, and that did not exist': [
    {
      by: 0,
      step: 'flow',
      nodes: [{ given: { name: 'one', unique: { value: 'v' } }, afterNodes: [] }],
      onDuplicate: 'return',
    },
    {
      by: 0,
      step: 'flow',
      nodes: [
        { given: { name: 'one' }, afterNodes: [] },
        { given: { name: 'one', after: [0], onParentFailure: 'wait' }, afterNodes: [2] },
        { given: { name: 'one', unique: { value: 'v' } }, afterNodes: [] },
      ],
      onDuplicate: 'return',
    },
  ],
  'a sequence without items that was reset and started was parked instead of done': [
    { by: 0, step: 'sequence', total: 0, start: false, given: { name: 'one' } },
    { by: 0, step: 'sequenceVerb', verb: 'reset', at: 0 },
    { by: 0, step: 'sequenceVerb', verb: 'start', at: 0 },
    { by: 0, step: 'run', queue: 'default', outcome: { kind: 'return' } },
  ],
  'the first job of a queue with limits waited for the next poll of a worker that knew of no limits': [
    { by: 0, step: 'enqueue', given: { name: 'one', queue: 'tight' } },
    { by: 1, step: 'run', queue: 'tight', outcome: { kind: 'return' } },
  ],
  'the first run of a workflow with the number of a deleted sequence was not 0': [
    { by: 0, step: 'sequence', total: 0, start: false, given: { name: 'unkept' } },
    { by: 1, step: 'workflow', given: { name: WORKFLOW, body: [] } },
  ],
  'a resumed workflow that was paused in hand was ready instead of asleep': [
    { by: 0, step: 'workflow', given: { name: WORKFLOW, body: [{ verb: 'all', branches: [[HELD], [SLEEP]] }] } },
    { by: 0, step: 'begin', queue: 'default' },
    { by: 0, step: 'command', verb: 'pause', at: 0 },
    { by: 0, step: 'endStep', at: 0, end: 'return' },
    { by: 0, step: 'command', verb: 'resume', at: 0 },
  ],
  'a withdrawn pause kept a workflow in hand from its next step': [
    { by: 0, step: 'workflow', given: { name: WORKFLOW, body: [HELD, HELD] } },
    { by: 0, step: 'begin', queue: 'default' },
    { by: 0, step: 'command', verb: 'pause', at: 0 },
    { by: 0, step: 'command', verb: 'resume', at: 0 },
    { by: 0, step: 'endStep', at: 0, end: 'return' },
  ],
  'a workflow with a pause requested asked for its passed sleep every millisecond until its step ended': [
    { by: 0, step: 'workflow', given: { name: WORKFLOW, body: [{ verb: 'all', branches: [[HELD], [SLEEP]] }] } },
    { by: 0, step: 'begin', queue: 'default' },
    { by: 0, step: 'command', verb: 'pause', at: 0 },
    { by: 0, step: 'advance', ms: 3_600_000 },
  ],
  'a called job that was cancelled with its workflow was kept for ever': [
    { by: 0, step: 'workflow', given: { name: WORKFLOW, body: [CALL] } },
    { by: 0, step: 'begin', queue: 'default' },
    { by: 0, step: 'command', verb: 'cancel', at: 0 },
    { by: 0, step: 'begin', queue: 'default' },
  ],
  'a retried workflow waited for ever for a job that had been cancelled with it': [
    { by: 0, step: 'workflow', given: { name: WORKFLOW, body: [CALL] } },
    { by: 0, step: 'begin', queue: 'default' },
    { by: 0, step: 'command', verb: 'cancel', at: 0 },
    { by: 0, step: 'run', queue: 'default', outcome: { kind: 'return' } },
    { by: 0, step: 'run', queue: 'default', outcome: { kind: 'return' } },
    { by: 0, step: 'command', verb: 'retry', at: 0 },
    { by: 0, step: 'begin', queue: 'default' },
  ],
  'a retried workflow unwound again, because it had been ended while it unwound': [
    {
      by: 0,
      step: 'workflow',
      given: { name: WORKFLOW, body: [{ verb: 'cleanup', body: [SLEEP], undo: [HELD] }] },
    },
    { by: 0, step: 'begin', queue: 'default' },
    { by: 0, step: 'command', verb: 'cancel', at: 0 },
    { by: 0, step: 'begin', queue: 'default' },
    { by: 0, step: 'workflowVerb', verb: 'end', at: 0 },
    { by: 0, step: 'command', verb: 'retry', at: 0 },
  ],
}

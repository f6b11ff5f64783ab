import fc from 'fast-check'
import { expect, test } from 'vitest'
import { FAILURE_SPANS, parseTopic, SORTS, SPANS, UPCOMING_SPANS, writeTopic } from './topics.js'
import type { Topic } from './topics.js'

const spans = Object.keys(SPANS) as (keyof typeof SPANS)[]
const name = fc.string({ minLength: 1, unit: 'grapheme' })
const topic: fc.Arbitrary<Topic> = fc.oneof(
  fc
    .constantFrom('health', 'queues', 'recurring', 'groups', 'sequences', 'workers', 'enqueue')
    .map((kind) => ({ kind }) as Topic),
  fc.record({ kind: fc.constant('overview' as const), span: fc.constantFrom(...spans) }),
  fc.record({ kind: fc.constant('queue' as const), span: fc.constantFrom(...spans), name }),
  fc.record({
    kind: fc.constantFrom('list' as const, 'workflows' as const),
    sort: fc.constantFrom(...SORTS),
    name: fc.string(),
  }),
  fc.record({ kind: fc.constant('failures' as const), span: fc.constantFrom(...FAILURE_SPANS) }),
  fc.record({ kind: fc.constant('upcoming' as const), span: fc.constantFrom(...UPCOMING_SPANS) }),
  fc.record({
    kind: fc.constantFrom(
      'job' as const,
      'failure' as const,
      'recurring:' as const,
      'group' as const,
      'sequence' as const,
      'enqueue:' as const,
      'bulk' as const,
    ),
    name,
  }),
  fc.record({ kind: fc.constant('audit' as const), name: fc.string() }),
)

test('a topic is read as it was written, whatever its name has', () => {
  fc.assert(
    fc.property(topic, (each) => {
      expect(parseTopic(writeTopic(each))).toEqual(each)
    }),
  )
})

test.each([
  '',
  'jobs',
  'health:',
  'overview',
  'overview:2h',
  'queue:1h',
  'queue:1h:',
  'queue:mail',
  'list:newest',
  'list:best:',
  'job:',
  'upcoming:15m',
  'failures:',
  'constructor',
  'overview:toString',
])('%j is no topic', (text) => {
  expect(parseTopic(text)).toBeUndefined()
})

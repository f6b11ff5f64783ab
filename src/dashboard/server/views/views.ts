import type { Topic } from '../../protocol/topics.js'
import { ViewGone } from '../parts.js'
import type { MakeView, Parts } from '../parts.js'
import { readAudit } from './audit.js'
import { readBulk } from './bulk.js'
import { readEnqueue, readEnqueueForm } from './enqueue.js'
import { readFailure, readFailures } from './failures.js'
import { readGroup, readGroups } from './groups.js'
import { readHealth } from './health.js'
import { readJob } from './job.js'
import { readList } from './list.js'
import { readOverview } from './overview.js'
import { readQueue } from './queue.js'
import { readQueues } from './queues.js'
import { readRecurring, readRecurringList } from './recurring.js'
import { readSequence, readSequences } from './sequences.js'
import { readUpcoming } from './upcoming.js'
import { readWorkers } from './workers.js'

/** Reads the state of a topic, or a later page of it. */
export async function readView(parts: Parts, topic: Topic, cursor?: string): Promise<MakeView> {
  if (cursor !== undefined && !PAGED.includes(topic.kind)) throw new ViewGone('This page has no later pages.')
  switch (topic.kind) {
    case 'health':
      return readHealth(parts)
    case 'overview':
      return readOverview(parts, topic.span)
    case 'queues':
      return readQueues(parts)
    case 'queue':
      return readQueue(parts, topic)
    case 'list':
    case 'workflows':
      return readList(parts, topic)
    case 'job':
      return readJob(parts, topic.name)
    case 'failures':
      return readFailures(parts, topic.span, cursor)
    case 'failure':
      return readFailure(parts, topic.name)
    case 'recurring':
      return readRecurringList(parts, cursor)
    case 'recurring:':
      return readRecurring(parts, topic.name, cursor)
    case 'groups':
      return readGroups(parts, cursor)
    case 'group':
      return readGroup(parts, topic.name)
    case 'sequences':
      return readSequences(parts, cursor)
    case 'sequence':
      return readSequence(parts, topic.name)
    case 'workers':
      return readWorkers(parts, cursor)
    case 'upcoming':
      return readUpcoming(parts, topic.span)
    case 'audit':
      return readAudit(parts, topic.name, cursor)
    case 'enqueue':
      return readEnqueue(parts)
    case 'enqueue:':
      return readEnqueueForm(parts, topic.name)
    case 'bulk':
      return readBulk(parts, topic.name)
    default:
      return topic satisfies never
  }
}

const PAGED: readonly Topic['kind'][] = [
  'failures',
  'recurring',
  'recurring:',
  'groups',
  'sequences',
  'workers',
  'audit',
]

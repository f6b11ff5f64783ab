import type { FunctionComponent } from 'preact'
import type { Page, Route } from '../route.js'

/** A page: the topics that a route needs, and its template, which is loaded when it is first shown. */
export interface View {
  readonly topics: (route: Route) => readonly string[]
  readonly load: () => Promise<FunctionComponent>
}

import * as audit from './audit/query.js'
import * as enqueue from './enqueue/query.js'
import * as failures from './failures/query.js'
import * as groups from './groups/query.js'
import * as job from './job/query.js'
import * as jobs from './jobs/query.js'
import * as overview from './overview/query.js'
import * as queues from './queues/query.js'
import * as recurring from './recurring/query.js'
import * as upcoming from './upcoming/query.js'
import * as workers from './workers/query.js'

/** Every page of the dashboard. */
export const VIEWS: Readonly<Record<Page, View>> = {
  overview: { topics: overview.topics, load: async () => (await import('./overview/template.js')).OverviewPage },
  jobs: { topics: jobs.topics, load: async () => (await import('./jobs/template.js')).JobsPage },
  workflows: { topics: jobs.topics, load: async () => (await import('./jobs/template.js')).JobsPage },
  job: { topics: job.topics, load: async () => (await import('./job/template.js')).JobPage },
  failures: { topics: failures.topics, load: async () => (await import('./failures/template.js')).FailuresPage },
  queues: { topics: queues.topics, load: async () => (await import('./queues/template.js')).QueuesPage },
  recurring: { topics: recurring.topics, load: async () => (await import('./recurring/template.js')).RecurringPage },
  groups: { topics: groups.topics, load: async () => (await import('./groups/template.js')).GroupsPage },
  sequences: { topics: groups.topics, load: async () => (await import('./groups/template.js')).GroupsPage },
  workers: { topics: workers.topics, load: async () => (await import('./workers/template.js')).WorkersPage },
  upcoming: { topics: upcoming.topics, load: async () => (await import('./upcoming/template.js')).UpcomingPage },
  health: { topics: () => [], load: async () => (await import('./health/template.js')).HealthPage },
  audit: { topics: audit.topics, load: async () => (await import('./audit/template.js')).AuditPage },
  unknown: { topics: () => [], load: async () => (await import('./unknown-page.js')).UnknownPage },
  enqueue: { topics: enqueue.topics, load: async () => (await import('./enqueue/template.js')).EnqueuePage },
}

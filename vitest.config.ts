import { defineConfig } from 'vitest/config'
import { BaseSequencer } from 'vitest/node'
import type { TestSpecification } from 'vitest/node'

/** One PostgreSQL server for the whole run, started when the first test needs it: `freshDatabase()`. */
const POSTGRES = ['test/postgres/global-setup.ts']

/** A thread for the heartbeat of each mill would be a large part of the time. */
const THREADS = 'test/support/kept-threads.ts'

/** Tests of what a user sees of a mill, on either store. A case that needs a file is skipped on PostgreSQL. */
const BEHAVIOUR = [
  'engine',
  'cancel',
  'unique',
  'links',
  'recurring',
  'groups',
  'limits',
  'outages',
  'sequences',
  'workflows',
  'check-command',
  'long-work',
  'secrets',
  'model',
  'bounds',
  'seams',
  'actions',
  'lists',
  'statistics',
  'why',
  'find-scan',
  'dashboard-reads',
  'why-states',
  'retry-one',
  'changes',
  'dashboard',
  'dashboard-acts',
  'dashboard-live',
  'dashboard-hostile',
]

/**
 * The same, with many processes, or of code above the store: on PostgreSQL they run with the matrix, so that `npm test`
 * stays short. What the store does for them is in its contract.
 */
const LONG_BEHAVIOUR = [
  'crashes',
  'long-work-processes',
  'cancel-processes',
  'observing-processes',
  'examples',
  'wake',
  'hooks',
  'context',
  'timers',
  'bad-input',
  'clocks',
  'signals',
  'blocked-loop',
  'floating',
  'option-effects',
  'old-payloads',
  'findings',
  'live',
  'liveness',
  'health',
]
const ON_POSTGRES = process.env['MILLRACE_POSTGRES_BIN'] ? [...BEHAVIOUR, ...LONG_BEHAVIOUR] : BEHAVIOUR

/** They take a minute or more, mostly waiting: they begin first, so that they do not end last. */
const LONGEST = [
  'simulator',
  'mutants',
  'torture',
  'postgres-outage',
  'engine',
  'cancel-processes',
  'crashes',
  'postgres-store',
  'postgres-transactions',
  'wake',
  'types',
  'migrate',
]

/** Projects one after the other: a worker is kept for the next file only if that is of the same project. */
const PROJECTS = ['unit', 'house', 'postgres', 'browser', 'package']

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId, project }: TestSpecification): number => {
      const index = LONGEST.findIndex((name) => moduleId.endsWith(`/${name}.test.ts`))
      return PROJECTS.indexOf(project.name) * 100 + (index === -1 ? LONGEST.length : index)
    }
    return (await super.sort(files)).toSorted((one, other) => rank(one) - rank(other))
  }
}

/**
 * Five projects, by what they need. `unit` is beside the code and needs nothing built; `house` needs the whole tree or
 * real processes; `postgres` is the tests of behaviour once more, on the other store; `browser` needs a Chromium,
 * and is skipped by name without one; `package` needs the packed tarball and npm.
 */
export default defineConfig({
  test: {
    pool: 'forks',
    // Of two cores: most tests wait for timers, processes or a server for a part of their time.
    maxWorkers: 3,
    // No module keeps state, so files share the modules that one of them has loaded.
    isolate: false,
    // Each project has a server of its own that compiles: the second one finds what the first has compiled.
    experimental: { fsModuleCache: true, fsModuleCachePath: '.cache/vitest' },
    sequence: { sequencer: LongestFirst },
    // `expect.poll` waits for what must happen: only a test that fails takes so long, on a busy machine too.
    expect: { poll: { timeout: 15_000 } },
    reporters: process.env['MILLRACE_TALLY']
      ? [['default', { summary: false }], './scripts/tally-reporter.mjs']
      : ['default'],
    projects: [
      {
        extends: true,
        test: {
          name: 'unit',
          include: ['src/**/*.test.ts'],
          testTimeout: 60_000,
          hookTimeout: 60_000,
          globalSetup: POSTGRES,
          setupFiles: [THREADS],
        },
      },
      {
        extends: true,
        test: {
          name: 'house',
          include: ['test/*.test.ts', 'test/house/*.test.ts'],
          testTimeout: 60_000,
          hookTimeout: 180_000,
          globalSetup: POSTGRES,
          setupFiles: [THREADS],
        },
      },
      {
        extends: true,
        test: {
          name: 'postgres',
          include: ON_POSTGRES.map((file) => `test/${file}.test.ts`),
          testTimeout: 60_000,
          hookTimeout: 180_000,
          globalSetup: POSTGRES,
          setupFiles: [THREADS, 'test/postgres/use-postgres.ts'],
        },
      },
      {
        extends: true,
        test: {
          name: 'browser',
          include: ['test/browser/*.test.ts'],
          testTimeout: 180_000,
          hookTimeout: 180_000,
          globalSetup: [...POSTGRES, 'test/browser/global-setup.ts'],
          setupFiles: [THREADS],
        },
      },
      {
        extends: true,
        test: {
          name: 'package',
          include: ['test/package/*.test.ts'],
          testTimeout: 300_000,
          hookTimeout: 300_000,
          // They share one packed tarball and one install; npm already uses both cores.
          fileParallelism: false,
          isolate: true,
        },
      },
    ],
  },
})

import { defineConfig } from 'vitest/config'

/**
 * Three projects, by what they need. `unit` stands beside the code and needs nothing;
 * `house` needs the whole tree or real processes; `package` needs the packed tarball and npm.
 */
export default defineConfig({
  test: {
    reporters: process.env['MILLRACE_TALLY'] ? ['default', './scripts/tally-reporter.mjs'] : ['default'],
    projects: [
      { test: { name: 'unit', include: ['src/**/*.test.ts'], testTimeout: 20_000 } },
      { test: { name: 'house', include: ['test/*.test.ts'], testTimeout: 60_000, hookTimeout: 60_000 } },
      { test: { name: 'package', include: ['test/package/*.test.ts'], testTimeout: 300_000, hookTimeout: 300_000 } },
    ],
  },
})

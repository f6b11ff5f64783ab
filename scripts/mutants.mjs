import { runNode, tool } from './run.mjs'

/** `npm run mutants`: the simulator must find every planted bug of test/mutants; `npm test` leaves out those that take long to find. */
const { code } = await runNode([tool('vitest'), 'run', '--project', 'house', 'test/mutants.test.ts'], {
  env: { MILLRACE_MUTANTS: 'all' },
  show: true,
})
process.exitCode = code

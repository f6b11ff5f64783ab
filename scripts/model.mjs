import { parseArgs } from 'node:util'
import { runNode, tool } from './run.mjs'

/**
 * `npm run model -- [--programs 2000] [--minutes 10] [--store sqlite|postgres] [--seed N]`: random programs of public verbs
 * against the reference model (test/model/), on one store. A difference prints the shortest program that shows it, and the seed.
 */
const { values } = parseArgs({
  options: {
    programs: { type: 'string', default: '2000' },
    minutes: { type: 'string', default: '10' },
    store: { type: 'string', default: 'sqlite' },
    seed: { type: 'string' },
  },
})
const [programs, minutes, seed] = [values.programs, values.minutes, values.seed ?? '0'].map(Number)
if (!(programs >= 1 && minutes > 0 && Number.isInteger(seed)) || !['sqlite', 'postgres'].includes(values.store)) {
  console.error('usage: npm run model -- [--programs N] [--minutes N] [--store sqlite|postgres] [--seed N]')
  process.exitCode = 2
} else {
  const project = values.store === 'postgres' ? 'postgres' : 'house'
  const { code } = await runNode([tool('vitest'), 'run', '--project', project, 'test/model.test.ts'], {
    env: {
      MILLRACE_PROGRAMS: String(programs),
      MILLRACE_PROGRAMS_MS: String(minutes * 60_000),
      MILLRACE_PROGRAMS_SEED: values.seed,
    },
    show: true,
    // A difference is shrunk after the time is over.
    timeoutMs: (minutes + 5) * 60_000,
  })
  process.exitCode = code
}

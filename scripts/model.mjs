import { parseArgs } from 'node:util'
import { runNode, tool } from './run.mjs'

/**
 * `npm run model -- [--programs 2000] [--minutes 10] [--store sqlite|postgres]`: random programs of public verbs against the
 * reference model (test/model/), on one store. A difference prints the shortest program that shows it.
 */
const { values } = parseArgs({
  options: {
    programs: { type: 'string', default: '2000' },
    minutes: { type: 'string', default: '10' },
    store: { type: 'string', default: 'sqlite' },
  },
})
const [programs, minutes] = [Number(values.programs), Number(values.minutes)]
if (!(programs >= 1 && minutes > 0) || !['sqlite', 'postgres'].includes(values.store)) {
  console.error('usage: npm run model -- [--programs N] [--minutes N] [--store sqlite|postgres]')
  process.exitCode = 2
} else {
  const project = values.store === 'postgres' ? 'postgres' : 'house'
  const { code } = await runNode([tool('vitest'), 'run', '--project', project, 'test/model.test.ts'], {
    env: { MILLRACE_PROGRAMS: String(programs), MILLRACE_PROGRAMS_MS: String(minutes * 60_000) },
    show: true,
    timeoutMs: (minutes + 2) * 60_000,
  })
  process.exitCode = code
}

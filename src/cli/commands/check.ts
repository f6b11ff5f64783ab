import { defineCommand } from 'citty'
import { listJobs } from '../../job/definition/registry.js'
import { millrace } from '../../index.js'
import type { CheckFinding, EncryptionOptions, JobFilter, State } from '../../index.js'
import { chooseStore, misuse, STORE_ARGUMENTS } from '../choose-store.js'
import { loadModule } from '../load-module.js'
import { tableOf } from '../table.js'
import type { Terminal } from '../terminal.js'

/** Finds stored jobs that the code of a module could not run, and fails if there are any. It writes nothing. */
export const check = defineCommand({
  meta: { name: 'check', description: 'Find stored jobs that this code or these keys could not run' },
  args: {
    ...STORE_ARGUMENTS,
    jobs: { type: 'string', description: 'the module whose exports are all jobs', valueHint: 'path' },
    encryption: {
      type: 'string',
      description: 'the module whose export `encryption` is that option of your mill',
      valueHint: 'path',
    },
    name: { type: 'string', description: 'only jobs of this name', valueHint: 'name' },
    queue: { type: 'string', description: 'only jobs of this queue', valueHint: 'name' },
    state: { type: 'string', description: 'jobs in this state; else all unfinished ones', valueHint: 'state' },
    json: { type: 'boolean', description: 'one JSON object a line for each finding' },
  },
  async run({ args, data }) {
    const terminal = data as Terminal
    const store = chooseStore('check', { store: args.store, schema: args.schema })
    const jobs = listJobs(await loadModule('check', '--jobs', args.jobs, 'give the module whose exports are all jobs'))
    if (jobs.length === 0) throw misuse('check', '--jobs', 'exports no job')
    const encryption = await encryptionOf(args.encryption)
    const mill = await millrace({ store, jobs, autoMigrate: false, logger: false, encryption })
    try {
      const found = await findings(mill.check(filterOf(args)))
      if (args.json === true) for (const each of found) terminal.stdout(JSON.stringify(each))
      else terminal.stdout(found.length === 0 ? 'no problem was found' : tableOf(COLUMNS, found.map(rowOf)))
      if (found.length > 0)
        throw new Error(`${found.length} ${found.length === 1 ? 'problem was' : 'problems were'} found`)
    } finally {
      await mill.close()
    }
  },
})

async function encryptionOf(path: string | undefined): Promise<EncryptionOptions | undefined> {
  if (path === undefined) return undefined
  const module = await loadModule('check', '--encryption', path, '')
  const { encryption } = module as { readonly encryption?: EncryptionOptions | undefined }
  if (encryption === undefined) throw misuse('check', '--encryption', 'has no export named "encryption"')
  return encryption
}

interface Wanted {
  readonly name: string | undefined
  readonly queue: string | undefined
  readonly state: string | undefined
}

/** Undefined without any: schedules are read too. `check` refuses a state that there is not. */
function filterOf({ name, queue, state }: Wanted): JobFilter | undefined {
  if (name === undefined && queue === undefined && state === undefined) return undefined
  return { job: name, queue, state: state as State | undefined }
}

async function findings(found: AsyncIterable<CheckFinding>): Promise<readonly CheckFinding[]> {
  const all: CheckFinding[] = []
  for await (const finding of found) all.push(finding)
  return all
}

const COLUMNS = ['job', 'id', 'state', 'problem', 'where', 'message']

function rowOf({ job, id, schedule, state, problem, part, at, message }: CheckFinding): readonly string[] {
  return [job, id ?? `schedule ${schedule}`, state ?? '', problem, at === undefined ? part : `${part} ${at}`, message]
}

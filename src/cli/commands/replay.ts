import { defineCommand } from 'citty'
import { isWorkflow } from '../../job/definition/brands.js'
import type { AnyJob } from '../../job/definition/define.js'
import { listJobs } from '../../job/definition/registry.js'
import { millrace } from '../../index.js'
import { internalsOf } from '../../mill/internals.js'
import type { MillInternals } from '../../mill/internals.js'
import { replayStored, unfinishedWorkflows } from '../../mill/replay-stored.js'
import { describeDrift } from '../../workflow/drift.js'
import { chooseStore, misuse, STORE_ARGUMENTS } from '../choose-store.js'
import { loadModule } from '../load-module.js'
import type { Terminal } from '../terminal.js'

/** Replays every unfinished workflow of a store with the code of a module, and fails if one would park or has no code. */
export const replay = defineCommand({
  meta: { name: 'replay', description: 'Find unfinished workflows that this code would park' },
  args: {
    ...STORE_ARGUMENTS,
    jobs: { type: 'string', description: 'the module whose exports are the workflows', valueHint: 'path' },
    name: { type: 'string', description: 'only the workflows of this name', valueHint: 'name' },
  },
  async run({ args, data }) {
    const terminal = data as Terminal
    const workflows = await workflowsOf(args.jobs, args.name)
    const mill = await millrace({
      store: chooseStore('replay', { store: args.store, schema: args.schema }),
      jobs: workflows,
      autoMigrate: false,
      logger: false,
    })
    try {
      const { fitting, parking, missing } = await replayAll(mill, workflows, args.name, terminal)
      const absent = missing === 0 ? '' : `, ${missing} are of workflows that ${args.jobs} does not export`
      terminal.stdout(`${fitting} fit, ${parking} would park${absent}`)
      const all = fitting + parking + missing
      if (parking + missing > 0) throw new Error(`${parking + missing} of ${all} unfinished workflows would not go on`)
    } finally {
      await mill.close()
    }
  },
})

async function workflowsOf(path: string | undefined, name: string | undefined): Promise<readonly AnyJob[]> {
  const module = await loadModule('replay', '--jobs', path, 'give the module whose exports are the workflows')
  const workflows = listJobs(module).filter((job) => isWorkflow(job) && (name === undefined || job.name === name))
  if (workflows.length > 0) return workflows
  throw misuse('replay', '--jobs', `exports no workflow${name === undefined ? '' : ` named ${JSON.stringify(name)}`}`)
}

type OpenMill = Awaited<ReturnType<typeof millrace>>

async function replayAll(
  mill: OpenMill,
  workflows: readonly AnyJob[],
  name: string | undefined,
  terminal: Terminal,
): Promise<{ readonly fitting: number; readonly parking: number; readonly missing: number }> {
  let [fitting, parking, missing] = [0, 0, 0]
  const internals = internalsOf(mill) as MillInternals
  const exported = new Map(workflows.map((workflow) => [workflow.name, workflow]))
  const absent = new Set<string>()
  for await (const row of unfinishedWorkflows(internals, name)) {
    const workflow = exported.get(row.name)
    const replayed = workflow === undefined ? undefined : await replayStored(internals, row.id, workflow)
    if (replayed === undefined) {
      missing += 1
      if (!absent.has(row.name)) terminal.stdout(`${row.name} ${row.id}: the module exports no workflow of this name`)
      absent.add(row.name)
    } else if (replayed.fits) fitting += 1
    else {
      parking += 1
      terminal.stdout(`${row.name} ${row.id}: ${describeDrift(replayed)}`)
    }
  }
  return { fitting, parking, missing }
}

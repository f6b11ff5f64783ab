import { expect } from 'vitest'
import { event, workflow } from '../../src/index.js'
import { append, answer, claimOne, sent, workflow as workflowJob } from '../contract/workflow-fixture.js'
import type { Bound } from './bound.js'
import { openStore } from './stores.js'

const body = workflow('counts', async (n: number, w) => {
  for (let i = 0; i < n; i += 1) await w.step(`s${i}`, () => i)
})
const waits = workflow('waits', async (_: undefined, w) => w.waitFor(event('go')))

export const workflowLimits: readonly Bound[] = [
  {
    of: 'src/store/workflows.ts#INBOX_MAX',
    at: 10_000,
    on: 'both',
    isLong: true,
    holds: async (size, bench) => {
      const b = await openStore(bench)
      const known = bench.notes.find((note) => typeof note === 'string')
      const id = (known as string | undefined) ?? (await workflowJob(b))
      if (known === undefined) bench.notes.push(id)
      const dids: string[] = []
      await bench.grow(size, async (missing) => {
        dids.push(...(await Promise.all(Array.from({ length: missing }, () => sent(b, id)))))
      })
      expect(dids.at(-1)).toBe(size <= 10_000 ? 'sent' : 'full')
    },
  },
  {
    of: 'src/client/workflow/step-records.ts#STEPS_LIMIT',
    at: 100,
    on: 'sqlite',
    holds: async (size, bench) => {
      const kit = await bench.kit({ jobs: [body] })
      const { mill } = kit
      const { id } = await mill.enqueue(body, size)
      await kit.drain()
      expect((await mill.steps(id)).length).toBe(Math.min(size, 100))
    },
  },
  {
    of: 'src/client/workflow/step-records.ts#STEPS_LIMIT_MAX',
    at: 1_000,
    on: 'none',
    holds: async (size, bench) => {
      const { mill } = await bench.kit({ jobs: [waits] })
      const { id } = await mill.enqueue(waits)
      const steps = await mill.steps(id, { limit: size }).catch((error: { code: string }) => error)
      if (size <= 1_000) expect(steps).toEqual([])
      else expect(steps).toMatchObject({ code: 'E_INVALID_OPTIONS' })
    },
  },
  {
    of: 'src/store/verbs/workflows.ts#FORGOTTEN_SHOWN',
    at: 20,
    on: 'both',
    holds: async (size, bench) => {
      const b = await openStore(bench)
      await workflowJob(b)
      const job = await claimOne(b, await b.worker())
      const rows = Array.from({ length: size }, (_, no) => answer(no, { since: no }))
      await append(b, job, { rows })
      const end = { run: 0, rows: [], taken: [], children: [], cancelled: [], deadlineAt: null, forgetFrom: 0 }
      await b.settle(job, { to: 'failed', error: '{}', workflow: end })
      await b.store.workflows.changeWorkflow({ id: job.id, verb: 'retry', reason: '', keepMs: Infinity })
      const shown = (await b.read(job.id)).log?.match(/\/step:/g)?.length
      expect(shown).toBe(Math.min(size, 20))
      await b.store.workflows.changeWorkflow({ id: job.id, verb: 'end', reason: '', keepMs: Infinity })
    },
  },
]

import type { ListedJob } from '../../../mill/mill-type.js'
import type { EnqueueFields, EnqueueFormFields, EnqueueRow } from '../../protocol/rows.js'
import { ViewGone } from '../parts.js'
import type { MakeView, Parts } from '../parts.js'

const JOBS_MAX = 1_000

/** The jobs that are registered in this process: only these can be enqueued here. */
export async function readEnqueue(parts: Parts): Promise<MakeView> {
  const jobs = parts.mill.jobs().toSorted((a, b) => (a.name < b.name ? -1 : 1))
  const rows = jobs.slice(0, JOBS_MAX).map((listed) => [listed.name, enqueueRow(parts, listed)] as const)
  return () => ({ fields: { total: jobs.length } satisfies EnqueueFields, rows })
}

/** The form of one job: its JSON Schema where it offers one, and the newest payload. */
export async function readEnqueueForm(parts: Parts, name: string): Promise<MakeView> {
  const listed = parts.mill.jobs().find((job) => job.name === name)
  if (listed === undefined)
    throw new ViewGone(`No job ${name} is registered in this process: it can be enqueued where it is.`)
  const { rows } = await parts.mill.findPage({ job: name }, { limit: 1 })
  const [last] = rows
  const schema = jsonSchemaOf(listed)
  return (show) => ({
    fields: {
      job: enqueueRow(parts, listed),
      schema,
      lastPayload: last === undefined || parts.isSealed(name) ? null : jsonText(show.plain(last.payload, 'payload')),
    } satisfies EnqueueFormFields,
    rows: [],
    ...(schema === null ? { absent: { schema: 'The schema of this job offers no JSON Schema.' } } : {}),
  })
}

function enqueueRow(parts: Parts, { name, description, queue, categories }: ListedJob): EnqueueRow {
  return {
    name,
    description: description ?? null,
    queue,
    categories,
    kind: parts.isWorkflow(name) ? 'workflow' : 'job',
  }
}

/** Standard JSON Schema: `~standard.jsonSchema.input({ target })`. */
function jsonSchemaOf({ job }: ListedJob): unknown {
  const input = (job.options as { readonly input?: { readonly '~standard'?: { readonly jsonSchema?: unknown } } }).input
  const jsonSchema = input?.['~standard']?.jsonSchema as { readonly input?: (options: object) => unknown } | undefined
  try {
    return jsonSchema?.input?.({ target: 'draft-2020-12' }) ?? null
  } catch {
    // A schema that JSON Schema cannot say, such as one with a transform: the form is a text field.
    return null
  }
}

/** Undefined for a value that JSON has not: the field begins empty then. */
function jsonText(value: unknown): string | null {
  try {
    return JSON.stringify(value, null, 2) ?? null
  } catch {
    // A big integer or a cycle.
    return null
  }
}

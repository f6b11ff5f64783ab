import { show } from '../codec/show.js'
import { DefinitionError, InvalidOptionsError } from '../errors.js'
import { EVENT, JOB, WORKFLOW } from '../job/definition/brands.js'
import { checkName, checkWorkflowOptions } from '../job/definition/check-options.js'
import type { AnyJob, Job, JobOptions, ResolvedOptions } from '../job/definition/define.js'
import type { Lazy } from '../job/definition/lazy.js'
import type { StandardSchema } from '../job/definition/schema.js'
import type { WorkflowLimits } from '../job/definition/workflow-options.js'
import type { Event, Restart, Work } from './work.js'

/** The body of a workflow. */
export type Body<Input, Result, Given = Input> = (input: Input, w: Work<NoInfer<Given>>) => Result

/** The options of a workflow: its body, those of `job()` but for `executor` and `treatAsDone`, and its limits. */
export interface WorkflowOptions<Input, Result, Given = Input>
  extends
    Omit<JobOptions<Input, Result, Given>, 'run' | 'executor' | 'module' | 'memoryMb' | 'treatAsDone'>,
    WorkflowLimits {
  readonly run: Body<Input, Result, Given> | Lazy<Input, Result>
}

/** The same with a schema, whose output is the input of the body. */
export interface SchemaWorkflowOptions<Input, Result, Given = Input> extends WorkflowOptions<Input, Result, Given> {
  readonly input: StandardSchema<Given, Input>
}

/**
 * Defines a workflow: a job whose body is plain code with recorded steps. It is enqueued, listed and registered like a job.
 *
 * ```ts
 * import { workflow } from 'millrace'
 * export const onboard = workflow('onboard', async (user: { email: string }, w) => {
 *   const account = await w.step('create', () => ({ id: user.email }))
 *   await w.sleep('3d')
 *   return account.id
 * })
 * ```
 */
export function workflow<Input = undefined, Result = void>(
  name: string,
  run: Body<Input, Result>,
): Job<Input, Exclude<Awaited<Result>, Restart>>
export function workflow<Input, Result = void, Given = Input>(
  name: string,
  options: SchemaWorkflowOptions<Input, Result, Given>,
): Job<Given, Exclude<Awaited<Result>, Restart>>
export function workflow<Input = undefined, Result = void, Given = Input>(
  name: string,
  options: WorkflowOptions<Input, Result, Given>,
): Job<Given, Exclude<Awaited<Result>, Restart>>
export function workflow(name: string, given: unknown): AnyJob {
  const options = (typeof given === 'function' ? { run: given } : given) as ResolvedOptions
  const problems = [...checkName('name', name), ...checkWorkflowOptions(options)]
  if (problems.length > 0) throw new InvalidOptionsError(`workflow(${show(name)})`, problems)
  const defined = {
    [JOB]: true as const,
    [WORKFLOW]: true as const,
    name,
    options,
    run: () => Promise.reject(new DefinitionError(needsMill(name))),
  }
  return Object.freeze(defined) as AnyJob
}

function needsMill(name: string): string {
  return `workflow ${JSON.stringify(name)} has steps to record, so it runs in a mill; in a test: const t = await testing({ jobs: [it] }), enqueue it, t.drain()`
}

/**
 * Defines an event that workflows wait for and `mill.send` sends. With a schema, the payload is checked when it is sent and
 * parsed when it is taken.
 *
 * ```ts
 * import { event } from 'millrace'
 * export const approved = event<{ by: string; yes: boolean }>('approved')
 * ```
 */
export function event<Sent, Got>(name: string, schema: StandardSchema<Sent, Got>): Event<Sent, Got>
export function event<Payload = undefined>(name: string): Event<Payload>
export function event(name: string, schema?: StandardSchema): Event<unknown> {
  const problems = checkName('name', name)
  const validate: unknown = (schema as { '~standard'?: { validate?: unknown } } | undefined)?.['~standard']?.validate
  if (schema !== undefined && typeof validate !== 'function')
    problems.push({
      path: 'schema',
      message: `must be a Standard Schema (zod 3.24+, valibot 1 …), got ${show(schema)}`,
    })
  if (problems.length > 0) throw new InvalidOptionsError(`event(${show(name)})`, problems)
  const defined = { [EVENT]: true as const, name, schema }
  return Object.freeze(defined)
}

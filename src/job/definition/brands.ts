import type { AnyJob, Category } from './define.js'
import type { AnyEvent } from './workflow-options.js'

/** Jobs, workflows, events and categories are recognised by brand, never by `instanceof`: two copies of the package must recognise each other's values. */
export const JOB = Symbol.for('millrace.job')
export const CATEGORY = Symbol.for('millrace.category')
/** A job whose handler is the body of a workflow. */
export const WORKFLOW = Symbol.for('millrace.workflow')
export const EVENT = Symbol.for('millrace.event')

export function isJob(value: unknown): value is AnyJob {
  return typeof value === 'object' && value !== null && (value as Record<symbol, unknown>)[JOB] === true
}

export function isCategory(value: unknown): value is Category {
  return typeof value === 'object' && value !== null && (value as Record<symbol, unknown>)[CATEGORY] === true
}

export function isWorkflow(value: unknown): value is AnyJob {
  return isJob(value) && (value as unknown as Record<symbol, unknown>)[WORKFLOW] === true
}

export function isEvent(value: unknown): value is AnyEvent {
  return typeof value === 'object' && value !== null && (value as Record<symbol, unknown>)[EVENT] === true
}

import type { AnyJob, Category } from './define.js'

/** Jobs and categories are recognised by brand, never by `instanceof`: two copies of the package must recognise each other's values. */
export const JOB = Symbol.for('millrace.job')
export const CATEGORY = Symbol.for('millrace.category')

export function isJob(value: unknown): value is AnyJob {
  return typeof value === 'object' && value !== null && (value as Record<symbol, unknown>)[JOB] === true
}

export function isCategory(value: unknown): value is Category {
  return typeof value === 'object' && value !== null && (value as Record<symbol, unknown>)[CATEGORY] === true
}

import { DefinitionError } from '../../errors.js'
import type { AnyJob, Category, CategoryOptions, ResolvedOptions } from './define.js'
import { findCycle } from '../rules/links.js'
import { keptFor } from './keep.js'
import type { UniqueOptions } from './unique-options.js'

/**
 * How a job inherits options from its categories. The nearest category wins, then the order within one `is` list. Two categories at
 * the same depth, from different lists and with different values, are a tie. A tie is refused with both names, since any choice
 * would be a guess.
 */

interface FoundCategory {
  readonly category: Category
  readonly depth: number
  /** The job or category whose `is` lists it. */
  readonly listedBy: AnyJob | Category
}

/** Every category of a job, nearest first, each once. A cycle is refused with its path. */
export function categoriesOf(job: AnyJob): readonly Category[] {
  return collectCategories(job).map((p) => p.category)
}

/** One option of a job: its own value, else the nearest category's. */
export function inherited<K extends keyof CategoryOptions>(job: AnyJob, name: K): CategoryOptions[K] | undefined {
  const own = (job.options as CategoryOptions)[name]
  if (own !== undefined) return own
  return nearestValue(job, `option ${name}`, (options) => options[name])
}

/** The values of an option at all levels that set it, most specific first: for options that merge part by part. */
export function levels<K extends keyof CategoryOptions>(job: AnyJob, name: K): NonNullable<CategoryOptions[K]>[] {
  const all = [(job.options as CategoryOptions)[name], ...categoriesOf(job).map((c) => c.options[name])]
  return all.filter((value) => value !== undefined) as NonNullable<CategoryOptions[K]>[]
}

/** The handler of a job: its own, else the nearest category's fallback. */
export function resolveHandler(job: AnyJob): ResolvedOptions['run'] {
  return inherited(job, 'run')
}

/** Resolves every inherited option of a job, so that ties and cycles are reported at registration and not while jobs run. */
export function checkInheritance(job: AnyJob): void {
  for (const part of ['limit', 'backoff', 'jitter', 'when'] as const)
    if (job.options.retry?.[part] === undefined)
      nearestValue(job, `option retry.${part}`, (options) => options.retry?.[part])
  for (const state of ['done', 'failed', 'cancelled'] as const)
    if (job.options.keep === undefined)
      nearestValue(job, `option keep.${state}`, (options) => keptFor(options.keep, state))
  for (const part of ['by', 'for', 'while', 'onDuplicate'] as const)
    if (uniquePart(job.options.unique, part) === undefined)
      nearestValue(job, `option unique.${part}`, (options) => uniquePart(options.unique, part))
  for (const name of [
    'run',
    'queue',
    'priority',
    'timeout',
    'treatAsDone',
    'codec',
    'encrypt',
    'description',
    'onParentFailure',
    'executor',
    'module',
    'memoryMb',
    'slowAfter',
    'limit',
    'rate',
  ] as const)
    inherited(job, name)
}

function nearestValue<T>(job: AnyJob, what: string, read: (options: CategoryOptions) => T | undefined): T | undefined {
  let best: (FoundCategory & { value: T }) | undefined
  const listsSeen = new Set<AnyJob | Category>()
  for (const found of collectCategories(job)) {
    const value = read(found.category.options)
    // Within one list only the first category that sets the option counts.
    if (value === undefined || listsSeen.has(found.listedBy)) continue
    listsSeen.add(found.listedBy)
    if (best === undefined) best = { ...found, value }
    else if (found.depth === best.depth && value !== best.value)
      throw new DefinitionError(
        `job ${quote(job)}: ${what} comes equally near from categories ${quote(best.category)} and ${quote(found.category)}; ` +
          `give it to the job itself, or to a nearer category`,
      )
  }
  return best?.value
}

/** Breadth first, so the result is ordered by depth, then by the order of `is`. Each category is walked once, however many list it. */
function collectCategories(job: AnyJob): FoundCategory[] {
  const found: FoundCategory[] = []
  const names = new Map<string, Category>()
  let level: readonly (AnyJob | Category)[] = [job]
  for (let depth = 1; level.length > 0; depth += 1) {
    const next: Category[] = []
    for (const listedBy of level) {
      for (const category of listedBy.options.is ?? []) {
        const known = names.get(category.name)
        if (known !== undefined && known !== category)
          throw new DefinitionError(
            `job ${quote(job)}: two different categories are named ${quote(category)}; rename one`,
          )
        if (known === category) continue
        names.set(category.name, category)
        found.push({ category, depth, listedBy })
        next.push(category)
      }
    }
    level = next
  }
  refuseCycle(job, names)
  return found
}

function refuseCycle(job: AnyJob, names: ReadonlyMap<string, Category>): void {
  const cycle = findCycle([...names.keys()], (name) => (names.get(name)?.options.is ?? []).map((each) => each.name))
  if (cycle !== undefined)
    throw new DefinitionError(`job ${quote(job)}: its categories go in a circle: ${cycle.join(' is ')}`)
}

function quote(named: { readonly name: string }): string {
  return JSON.stringify(named.name)
}

/** `unique: false` sets every part. */
function uniquePart(unique: CategoryOptions['unique'], part: keyof UniqueOptions): unknown {
  return unique === false ? false : unique?.[part]
}

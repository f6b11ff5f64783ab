import type { Category, Handle, Job, Mill } from '../../src/index.js'
import { category, job } from '../../src/index.js'
import type { TestKit } from '../../src/testing/index.js'
import { testing } from '../support/testing.js'

/** Where an option may be set, the most specific first: a level overrides those after it. */
export const LEVELS = ['edit', 'enqueue', 'job', 'category', 'configure', 'mill'] as const
export type Level = (typeof LEVELS)[number]

/** What is set at each level. */
export type Placed = { readonly [level in Level]?: object }

/**
 * One option: the levels that take it, and two values of it with what a caller then sees. Each level is tried alone, and each
 * level against every less specific one.
 */
export interface OptionRow {
  /** The name; `retry.limit` for a part of an option. */
  readonly option: string
  readonly levels: readonly Level[]
  readonly values: readonly [OptionValue, OptionValue]
  /** Runs a job with these options, and returns what is seen of them. */
  readonly see: (placed: Placed) => Promise<unknown>
  /** Without the option at any level. */
  readonly otherwise?: unknown
  /** The store keeps the value, so the levels of one job are tried on PostgreSQL too. */
  readonly isStored?: boolean
}

export interface OptionValue {
  /** The value, or the options that hold it: `{ retry: { limit: 1 } }`. */
  readonly given: unknown
  readonly seen: unknown
}

/** Options that set a value at a level. */
export function placeAt({ option }: OptionRow, level: Level, { given }: OptionValue): Placed {
  const value = option.split('.').reduceRight<unknown>((inner, name) => ({ [name]: inner }), given)
  return { [level]: value as object }
}

type Handler = (payload: never, ctx: never) => unknown

/** A kit with one job, defined with these options, and a category above it. */
export class Subject {
  readonly kit: TestKit
  readonly job: Job<unknown, unknown>
  readonly placed: Placed

  constructor(kit: TestKit, subject: Job<unknown, unknown>, placed: Placed) {
    this.kit = kit
    this.job = subject
    this.placed = placed
  }

  static async make(placed: Placed, run?: Handler, more: readonly Job<never, never>[] = []): Promise<Subject> {
    const above: Category = category('above', { ...placed.category })
    const own = { ...(run === undefined ? {} : { run }), is: [above], ...placed.job }
    const subject = job('subject', own as never) as Job<unknown, unknown>
    const kit = await testing({ ...placed.mill, jobs: [subject, ...more] })
    return new Subject(kit, subject, placed)
  }

  get mill(): Mill {
    return this.kit.mill
  }

  /** Enqueues it with the options of its level, and edits it. */
  async enqueue(payload: unknown = {}, options: object = {}): Promise<Handle<unknown>> {
    const handle = await this.mill.enqueue(this.job, payload, { ...options, ...this.placed.enqueue })
    if (this.placed.edit !== undefined) await this.mill.edit(handle.id, this.placed.edit)
    return handle
  }

  /** Runs the next job of a queue, whatever becomes of it. */
  async run(queue?: string): Promise<void> {
    await this.kit.consume(queue).catch(() => undefined)
  }
}

/** Closes the kit after the look. */
export async function withSubject<T>(
  placed: Placed,
  run: Handler | undefined,
  look: (subject: Subject) => Promise<T>,
  more: readonly Job<never, never>[] = [],
): Promise<T> {
  const subject = await Subject.make(placed, run, more)
  try {
    return await look(subject)
  } finally {
    await subject.kit.close()
  }
}

import fc from 'fast-check'
import { createDatabase } from '../../src/testing/postgres/fresh-database.js'
import { openModelDatabase } from './databases.js'
import type { ModelDatabase } from './databases.js'
import { Fleet } from './fleet.js'
import { MILLS, NAMES, Pair } from './pair.js'
import { programs } from './programs.js'
import type { Step } from './steps.js'

/** The average number of steps in a program. */
const PROGRAM_STEPS = 60

/** Runs one program in an empty database, and compares after every step. */
export async function runProgram(database: ModelDatabase, steps: readonly Step[]): Promise<void> {
  await database.empty()
  const program = JSON.stringify(steps)
  const isUsed = (name: string): boolean => program.includes(`"${name}"`)
  const pair = new Pair(await Fleet.start(database, MILLS, NAMES, isUsed))
  for (const step of steps) await pair.run(step)
}

/** The programs of one seed: the same ones wherever they run. */
export interface Chunk {
  readonly seed: number
  readonly programs: number
  readonly isOver: () => boolean
  /** Called after each program that agrees, with the number of its steps. */
  readonly agreed: (steps: number) => void
}

/**
 * Runs the programs of a seed until one differs or the time is over. Gives the shortest program that was found to differ, and
 * how; undefined when all agree.
 */
export async function runChunk(database: ModelDatabase, chunk: Chunk): Promise<string | undefined> {
  let differedAt: number | undefined
  // A program that differs is shrunk after the time is over, for a while.
  const isOver = (): boolean =>
    differedAt === undefined ? chunk.isOver() : performance.now() - differedAt > SHRINK_MAX_MS
  const property = fc.asyncProperty(programs(PROGRAM_STEPS), async (steps) => {
    if (isOver()) return
    try {
      await runProgram(database, steps)
    } catch (error) {
      differedAt ??= performance.now()
      throw error
    }
    if (differedAt === undefined) chunk.agreed(steps.length)
  })
  const details = await fc.check(property, { numRuns: chunk.programs, seed: chunk.seed, unbiased: true })
  if (!details.failed) return undefined
  const { counterexample, errorInstance } = details
  const why = errorInstance instanceof Error ? (errorInstance.stack ?? errorInstance.message) : String(errorInstance)
  return `seed ${chunk.seed}: ${JSON.stringify(counterexample?.[0])}\n${why}`
}

/** A database for the programs of one lane, one after the other: in memory, or on the server at this URL. */
export async function openLane(url: string | undefined): Promise<ModelDatabase> {
  if (url === undefined) return openModelDatabase(MILLS, undefined)
  const database = await createDatabase(url)
  const opened = await openModelDatabase(MILLS, { url: database.url, schema: 'millrace' })
  const close = async (): Promise<void> => {
    await opened.close()
    await database.drop()
  }
  return { ...opened, close }
}

/** The time to find the shortest program that differs: meanwhile its lane runs no other. */
const SHRINK_MAX_MS = 60_000

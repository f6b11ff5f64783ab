import type { World } from '../world/world.js'

/** The output of a command. */
export interface Terminal {
  /** To standard output: the result, suitable for a pipe. */
  readonly stdout: (text: string) => void
  /** To standard error: messages for people. */
  readonly stderr: (line: string) => void
  readonly world: World
}

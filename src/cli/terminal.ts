import type { World } from '../world/world.js'

/** What a command has of the world around it. */
export interface Terminal {
  /** To standard output: what was asked for, fit to be piped on. */
  readonly answer: (text: string) => void
  /** To standard error: what a person should know besides. */
  readonly tell: (line: string) => void
  readonly world: World
}

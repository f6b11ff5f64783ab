import type { Heart } from '../workers.js'
import type { Target } from './target.js'

export interface HeartOptions {
  readonly target: Target
  readonly channel: string
  readonly worker: string
  readonly everyMs: number
  readonly beat: string
  readonly onLost: (why: string) => void
  readonly heard: (news: string) => void
}

/** TODO thread */
export function startHeart(_options: HeartOptions): Promise<Heart | undefined> {
  return Promise.resolve(undefined)
}

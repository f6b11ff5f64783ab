import type { Route } from '../../route.js'

/** The registered jobs, and the form of the one that is chosen. */
export function topics({ query }: Route): readonly string[] {
  const job = query['job']
  return job === undefined ? ['enqueue'] : ['enqueue', `enqueue:${job}`]
}

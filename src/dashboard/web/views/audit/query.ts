import type { Route } from '../../route.js'

export function topics({ query }: Route): readonly string[] {
  return [`audit:${query['q'] ?? ''}`]
}

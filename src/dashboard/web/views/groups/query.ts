import type { Route } from '../../route.js'

/** All groups and sequences, or one of either. */
export function topics({ page, id }: Route): readonly string[] {
  if (id === undefined) return ['groups', 'sequences']
  return [page === 'sequences' ? `sequence:${id}` : `group:${id}`]
}

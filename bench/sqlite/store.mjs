import { runTask } from '../child.mjs'
import { emptyTemplate } from '../measure.mjs'
import { Place } from '../place.mjs'

export async function openPlace(root) {
  return new Place(root)
}

/** What all contestants run on, for the first line. */
export async function describeStore(place) {
  const file = await emptyTemplate(place, 'bare')
  const { driver, sqlite } = await runTask({ task: 'fold', file, dist: place.dist })
  return `${driver} (SQLite ${sqlite})`
}

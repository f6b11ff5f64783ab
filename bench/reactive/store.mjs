import { Place } from '../place.mjs'

/** Holds a copy of the built package. Nothing is written, so what a flush costs is of no interest. */
class MemoryPlace extends Place {
  flushMs() {
    return undefined
  }
}

export async function openPlace(root) {
  return new MemoryPlace(root)
}

export async function describeStore() {
  return 'in memory'
}

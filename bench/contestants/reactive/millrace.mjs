import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

/** The package as built, in a context whose every write is a drain: effects run before `write` returns, as in the others. */
export async function open({ dist }) {
  const library = await import(pathToFileURL(join(dist, 'reactive', 'index.js')).href)
  const { signal, computed, effect, batch, createSimulation } = library
  const context = createSimulation()
  return {
    library,
    signal: (value) => signal(value),
    computed: (f) => computed(f),
    effect: (f) => effect(f),
    batch,
    read: (cell) => cell.get(),
    write: (cell, value) => void cell.set(value),
    within: (f) => context.enter(f),
  }
}

/** `@preact/signals-core`: cells with a `value` property. */
export async function open() {
  const { signal, computed, effect, batch } = await import('@preact/signals-core')
  return {
    signal: (value) => signal(value),
    computed: (f) => computed(f),
    effect: (f) => effect(f),
    batch,
    read: (cell) => cell.value,
    write: (cell, value) => {
      cell.value = value
    },
    within: (f) => f(),
  }
}

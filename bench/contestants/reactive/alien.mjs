/** `alien-signals`: cells are functions, and a batch is a pair of calls. */
export async function open() {
  const { signal, computed, effect, startBatch, endBatch } = await import('alien-signals')
  return {
    signal: (value) => signal(value),
    computed: (f) => computed(f),
    effect: (f) => effect(f),
    batch: (f) => {
      startBatch()
      try {
        return f()
      } finally {
        endBatch()
      }
    },
    read: (cell) => cell(),
    write: (cell, value) => void cell(value),
    within: (f) => f(),
  }
}

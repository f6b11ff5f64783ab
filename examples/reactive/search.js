import { createSimulation, debounce, signal, spin, step, waitFor } from 'millrace/reactive'

const ctx = createSimulation()
const query = ctx.enter(() => signal('m'))

const search = (text) => ['mill', 'millrace', 'race'].filter((word) => word.includes(text))

const results = ctx.enter(() =>
  spin(function* () {
    const text = yield* waitFor(debounce(query, 300)) // quiet for 300 ms
    const found = yield* step('search', () => search(text)) // the outside world, once per text
    console.log(`${ctx.now()} ms: ${text} finds ${found.join(', ')}`)
    return found
  }),
)
ctx.spawn(results)

ctx.advanceTo(100)
ctx.enter(() => query.set('mi'))
ctx.advanceTo(200)
ctx.enter(() => query.set('mill'))
ctx.advanceTo(1000)
// -> 500 ms: mill finds mill, millrace

ctx.enter(() => query.set('race'))
ctx.advanceTo(2000)
// -> 1300 ms: race finds millrace, race

await ctx.close()

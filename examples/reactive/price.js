import { batch, computed, createSimulation, effect, signal } from 'millrace/reactive'

// A context is one reactive world. A simulation runs everything at once, which suits an example.
const ctx = createSimulation()

ctx.enter(() => {
  const price = signal(100)
  const rate = signal(0.2)

  const tax = computed(() => price.get() * rate.get())
  const total = computed(() => price.get() + tax.get())

  effect(() => console.log(`total ${total.get()}`))
  // -> total 120

  price.set(200)
  // -> total 240

  batch(() => {
    price.set(300)
    rate.set(0.1)
  })
  // -> total 330
})

await ctx.close()

// An import as a flow: three files are read side by side, then loaded, then reported. A broken file is corrected and retried.
import { job, millrace } from 'millrace'
import { freshFile } from './fresh-file.js'

const files = { 'a.csv': 2, 'b.csv': 3, 'c.csv': undefined }

const extract = job('extract', {
  run: ({ file }) => {
    if (files[file] === undefined) throw new Error(`${file} is broken`)
    return files[file]
  },
  retry: { limit: 0 },
})
const load = job('load', async (_, ctx) => {
  const counts = await ctx.results(extract)
  return counts.reduce((sum, count) => sum + count, 0)
})
// Runs in any case: `run` ignores the outcome of its parents.
const tell = job('tell', { run: () => 'all files were looked at', onParentFailure: 'run' })

const mill = await millrace({ store: freshFile(), jobs: [extract, load, tell], logger: false })
await mill.start()

const { parts, loaded, told } = await mill.flow((f) => {
  const parts = Object.keys(files).map((file) => f.add(extract, { file }))
  return { parts, loaded: f.add(load, undefined, { after: parts }), told: f.add(tell).after(...parts) }
})

console.log(await told.result({ timeout: '10s' }))
console.log(`load is ${(await loaded.get()).state}`)

files['c.csv'] = 4
await mill.retry(parts[2].id)
console.log(`${await loaded.result({ timeout: '10s' })} rows`)

try {
  await mill.flow((f) => {
    const first = f.add(load)
    first.after(f.add(tell, undefined, { after: [first] }))
  })
} catch (error) {
  console.log(error.code, error.path.join(' → '))
}

await mill.close()

// prints: all files were looked at
// prints: load is blocked
// prints: 9 rows
// prints: E_CYCLE load[0] → tell[1] → load[0]

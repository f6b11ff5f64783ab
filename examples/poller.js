// A poller without end: what it has seen goes from turn to turn, and a restart empties its log now and then.
import { event, millrace, workflow } from 'millrace'
import { freshFile } from './fresh-file.js'

const enough = event('enough')
let page = 0

const poll = workflow('poll', async (seen, w) => {
  for (;;) {
    const news = await w.step('look', () => [`page ${(page += 1)}`])
    seen = { pages: [...seen.pages, ...news].slice(-3), looks: seen.looks + 1 }
    const next = await w.race({ enough: (w) => w.waitFor(enough), later: (w) => w.sleep(5) })
    if (next.won === 'enough') return { ...seen, runs: w.run + 1 }
    // Two answers a turn: after three turns a restart empties the log.
    if (w.steps >= 9) return w.restart(seen)
  }
})

const mill = await millrace({ store: freshFile(), jobs: [poll], logger: false, poll: '20ms' })
await mill.start()
const handle = await mill.enqueue(poll, { pages: [], looks: 0 }, { key: 'news' })
while ((await handle.get()).workflow?.run !== 2) await new Promise((next) => setTimeout(next, 5))
await mill.send([poll, 'news'], enough, undefined)
const { pages, looks, runs } = await handle.result({ timeout: '10s' })
console.log('every page seen once:', looks === page, 'the last three:', pages.length, 'runs:', runs >= 3)
console.log('only the log of the last run is kept:', (await mill.steps(handle.id)).length <= 12)
await mill.close()

// prints: every page seen once: true the last three: 3 runs: true
// prints: only the log of the last run is kept: true

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openMill, openStill } from '../../examples/demo/shop/still.js'

/** The roles of the dashboards of one shop: the page of a viewer is a picture of its own. */
const OPTIONS = { title: 'shop', environment: 'production', port: 0 }

/**
 * The shops of the pictures, each made when the first picture needs it: `trouble` is the demo at one instant, `healthy` has no problems,
 * `empty` no jobs, and `gone` loses its file while a page is open.
 */
export function makeShops({ jobs }) {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-pictures-'))
  const made = new Map()
  const open = async (name) => {
    const store = join(folder, `${name}.db`)
    const shop =
      name === 'empty'
        ? await openMill({ store })
        : await openStill({ store, count: name === 'gone' ? 200 : jobs, isHealthy: name !== 'trouble' })
    const admin = await shop.mill.dashboard(OPTIONS)
    const viewer = await shop.mill.dashboard({ ...OPTIONS, authorize: () => ({ role: 'viewer', actor: 'vera' }) })
    return {
      ...shop,
      link: admin.url,
      viewerLink: viewer.url,
      ids: await idsOf(shop.mill),
      lose: () => rmSync(store),
      close: async () => {
        await Promise.all([admin.close(), viewer.close()])
        await shop.close()
      },
    }
  }
  return {
    of: (name) => {
      if (!made.has(name)) made.set(name, open(name))
      return made.get(name)
    },
    close: async () => {
      for (const shop of made.values()) await (await shop).close().catch(() => {}) // the store of one is gone
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** The jobs, by what a picture shows of them; undefined where a shop has none. */
async function idsOf(mill) {
  const first = async (filter) => (await mill.findPage(filter, { limit: 1 })).rows[0]?.id
  return {
    done: await first({ job: 'charge', state: 'done' }),
    retrying: await first({ job: 'charge', state: 'retrying' }),
    running: await first({ job: 'thumbs', state: 'running' }),
    parked: await first({ job: 'crasher' }),
    graph: await first({ job: 'charge', key: 'order-4711' }),
    refund: await first({ job: 'refund' }),
    hostile: await first({ job: 'markup' }),
    migrate: await first({ job: 'migrate' }),
    print: (await mill.stats.errorGroups({ days: 7 })).rows[0]?.fingerprint,
  }
}

import { defineCommand } from 'citty'
import { show } from '../../codec/show.js'
import { millrace } from '../../index.js'
import { listen } from '../../dashboard/index.js'
import { chooseStore, misuse, STORE_ARGUMENTS } from '../choose-store.js'
import type { Terminal } from '../terminal.js'

/** Serves the dashboard of a store until a signal ends it. The handlers of its jobs are not here: jobs cannot be enqueued. */
export const dashboard = defineCommand({
  meta: { name: 'dashboard', description: 'Serve the dashboard of a store, and print its link' },
  args: {
    ...STORE_ARGUMENTS,
    port: { type: 'string', description: 'the port, 0 for any that is free; else 8080', valueHint: 'number' },
    'read-only': { type: 'boolean', description: 'look, and change nothing' },
  },
  async run({ args, data }) {
    const terminal = data as Terminal
    const port = portOf(args.port)
    const store = chooseStore('dashboard', { store: args.store, schema: args.schema })
    const mill = await millrace({ store, logger: 'error', autoMigrate: false })
    try {
      const { url } = await listen(mill, {
        ...(port === undefined ? {} : { port }),
        readOnly: args['read-only'] === true,
      })
      mill.stopOnSignals()
      terminal.stdout(url)
    } catch (error) {
      await mill.close()
      throw error
    }
  },
})

const PORT_MAX = 65_535

function portOf(given: string | undefined): number | undefined {
  if (given === undefined) return undefined
  const port = /^\d{1,5}$/.test(given) ? Number(given) : NaN
  if (port <= PORT_MAX) return port
  throw misuse('dashboard', '--port', `must be a number from 0 to ${PORT_MAX}, got ${show(given)}`)
}

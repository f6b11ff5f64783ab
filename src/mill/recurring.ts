import type { Client } from '../client.js'
import { decodePayload } from '../client/read/records.js'
import { isSameJson } from '../live/live.js'
import type { LiveContext } from '../live/live.js'
import type { Registry } from '../job/definition/registry.js'
import type { Encoded } from '../job/rules/outcome.js'
import type { EngineEvents } from '../observe/engine-events.js'
import type { FireParts } from '../schedule/fire.js'
import type { ScheduleRecord } from '../schedule/record.js'
import { Recurring } from '../schedule/recurring.js'
import type { Store } from '../store/store.js'
import type { World } from '../world/world.js'

interface Wired {
  readonly world: World
  readonly store: Store
  readonly registry: Registry
  readonly events: EngineEvents
}

/** The parts of a mill that firing ticks needs. */
export function firePartsOf({ world, store, registry, events }: Wired): FireParts {
  return {
    world,
    store,
    keepCancelledMs: (name) => registry.keepOf(name).cancelled,
    fired: (schedule, ticks, jobs) => {
      events.enqueued(jobs, { verb: 'tick', schedule })
      events.ticked(schedule, ticks)
    },
    storeFailed: (what, error) => events.storeFailed(what, error),
  }
}

/** A stored payload in its current version; undefined when it does not decode. */
export function decodeFor(registry: Registry, name: string, payload: Encoded, version: number): unknown {
  const decoded = decodePayload(registry.codecOf(name), payload, registry.known(name)?.upcast, version)
  return decoded.ok ? decoded.value : undefined
}

/** The commands of `mill.schedules`, wired to a mill's client. */
export function recurringOf(
  wired: Wired & { readonly live: LiveContext },
  client: Client,
  auditKeepMs: number,
): Recurring {
  const watch = wired.live.kind<ScheduleRecord[], ScheduleRecord[]>({
    read: async () => [await recurring.list()],
    isSame: isSameJson,
    valueOf: (schedules) => schedules,
  })
  const recurring = new Recurring({
    ...firePartsOf(wired),
    auditKeepMs,
    template: (job, payload, options, problems) => client.template(job, payload, options, problems),
    toHandle: (id) => client.handle(id),
    decode: (name, payload, version) => decodeFor(wired.registry, name, payload, version),
    watch: () => watch('all'),
  })
  return recurring
}

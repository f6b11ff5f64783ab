import { effect } from '../../../reactive/index.js'
import type { LiveState } from '../../../job/live-state.js'
import type { Cancel } from '../../../world/timers.js'
import type { Topic } from '../../protocol/topics.js'
import { isUuid } from '../ids.js'
import type { Parts } from '../parts.js'

/** Calls back when the subject of a topic may have changed: by its live state where it has one, else by the hints of the store. */
export function watchOf({ mill, internals }: Parts, topic: Topic, changed: () => void): Cancel {
  const live = liveOf()
  if (live !== undefined)
    return mill.live.context.enter(() =>
      effect(() => {
        live.get()
        changed()
      }),
    )
  return internals.store.changes.onHint(() => changed())

  function liveOf(): LiveState<unknown> | undefined {
    // A text that is no id has nothing to watch: the read says so.
    if ((topic.kind === 'job' || topic.kind === 'sequence') && !isUuid(topic.name)) return undefined
    if (topic.kind === 'job') return mill.watch(topic.name)
    if (topic.kind === 'group') return mill.group(topic.name).watch()
    if (topic.kind === 'sequence') return mill.sequence(topic.name).watch()
    return undefined
  }
}

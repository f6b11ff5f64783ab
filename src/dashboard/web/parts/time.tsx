import { useApp } from '../app-context.js'
import { duration, seconds } from '../format/duration.js'
import { UNKNOWN } from '../format/number.js'
import { dayAndTime, exact, relative } from '../format/time.js'

/** `12 s ago`, `in 40 s`, after a day the date. The title has the instant with its zone, and UTC. */
export function Ago({ at }: { at: number | undefined }) {
  const { clock, zone } = useApp()
  if (at === undefined) return <span class="faint">{UNKNOWN}</span>
  return <time title={exact(at, zone.value)}>{relative(at, clock.now.value, zone.value)}</time>
}

/** Of what is to come: `in 40 s`; what could have begun is due. */
export function Due({ at }: { at: number }) {
  const { clock } = useApp()
  return at <= clock.now.value ? <>due</> : <Ago at={at} />
}

/** `14:02:31` today, with the day before or after it. */
export function When({ at, short = false }: { at: number | undefined; short?: boolean }) {
  const { clock, zone } = useApp()
  if (at === undefined) return <span class="faint">{UNKNOWN}</span>
  const shown = dayAndTime(at, clock.now.value, zone.value, !short)
  return <time title={exact(at, zone.value)}>{shown}</time>
}

/** A length that is over. */
export function Took({ ms }: { ms: number | undefined }) {
  return ms === undefined ? <span class="faint">{UNKNOWN}</span> : <span class="nowrap">{duration(ms)}</span>
}

/** A length that grows: since then. */
export function Since({ at }: { at: number | undefined }) {
  const { clock, zone } = useApp()
  if (at === undefined) return <span class="faint">{UNKNOWN}</span>
  return <time title={exact(at, zone.value)}>{seconds(Math.max(0, clock.now.value - at))}</time>
}

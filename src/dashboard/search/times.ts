const UNITS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
}

/** The ms of a duration such as `30d` or `1h30m`; undefined when it is none. */
export function durationOf(text: string): number | undefined {
  if (!/^(\d{1,12}(\.\d{1,3})?(ms|s|m|h|d|w))+$/.test(text)) return undefined
  let sum = 0
  for (const [, number, , unit] of text.matchAll(/(\d+(\.\d+)?)(ms|s|m|h|d|w)/g))
    sum += Number(number) * (UNITS[unit as string] as number)
  return sum
}

/** What an instant is counted from. */
export interface Times {
  readonly now: number
  /** When the running version was deployed; undefined when that is not known. */
  readonly deployedAt?: number | undefined
}

/**
 * An instant: a duration back from now, a date, a date and time, a time of today, `today`, `yesterday` or `deploy`. Without a zone it is
 * local time. Undefined when the text is none of these, or when it is not known.
 */
export function instantOf(text: string, { now, deployedAt }: Times): number | undefined {
  const span = durationOf(text)
  if (span !== undefined) return Math.max(0, now - span)
  if (text === 'deploy') return deployedAt
  if (text === 'today' || text === 'yesterday') return midnight(now, text === 'today' ? 0 : -1)
  const time = /^(\d{1,2}):(\d{2})(?::(\d{2}))?$/.exec(text)
  if (time !== null) return timeOfDay(now, time)
  if (/^\d{4}-\d{2}-\d{2}$/.test(text)) return defined(Date.parse(`${text}T00:00:00`))
  if (/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}/.test(text)) return defined(Date.parse(text))
  return undefined
}

export function isInstant(text: string): boolean {
  return text === 'deploy' || instantOf(text, { now: 0 }) !== undefined
}

function midnight(now: number, days: number): number {
  const day = new Date(now)
  return new Date(day.getFullYear(), day.getMonth(), day.getDate() + days).getTime()
}

/** A time that is still to come means that of yesterday. */
function timeOfDay(now: number, [, hours, minutes, seconds]: RegExpExecArray): number | undefined {
  const [h, m, s] = [Number(hours), Number(minutes), Number(seconds ?? 0)]
  if (h > 23 || m > 59 || s > 59) return undefined
  const day = new Date(now)
  const at = new Date(day.getFullYear(), day.getMonth(), day.getDate(), h, m, s).getTime()
  return at <= now ? at : new Date(day.getFullYear(), day.getMonth(), day.getDate() - 1, h, m, s).getTime()
}

function defined(ms: number): number | undefined {
  return Number.isNaN(ms) ? undefined : ms
}

import { count } from '../format/number.js'

const WIDTH = 96
const HEIGHT = 20
/** A bar that is not zero stays visible. */
const LEAST = 1.5

/** Sixty bars without an axis: the shape of the last hour. What is not known leaves a gap. */
export function Spark({
  values,
  kind = 'waiting',
  name,
}: {
  values: readonly (number | null)[]
  kind?: string
  name: string
}) {
  const known = values.filter((value): value is number => value !== null)
  const most = Math.max(1, ...known)
  const step = WIDTH / Math.max(1, values.length)
  return (
    <svg
      class={`spark spark-${kind}`}
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={sparkText(name, known)}
    >
      <title>{sparkText(name, known)}</title>
      <line x1="0" x2={WIDTH} y1={HEIGHT - 0.5} y2={HEIGHT - 0.5} />
      {values.map((value, i) => (value ? <rect key={i} {...barAt(i, step, value / most)} /> : null))}
    </svg>
  )
}

function barAt(i: number, step: number, share: number) {
  const height = Math.max(LEAST, share * (HEIGHT - 1))
  return { x: i * step, y: HEIGHT - height, width: Math.max(0.6, step - 0.5), height }
}

/** `failed per minute: now 12, highest 40, lowest 0`. */
export function sparkText(name: string, known: readonly number[]): string {
  if (known.length === 0) return `${name}: no data`
  const now = known.at(-1)
  return `${name}: now ${count(now)}, highest ${count(Math.max(...known))}, lowest ${count(Math.min(...known))}`
}

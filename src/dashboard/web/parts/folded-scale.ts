/** A stretch of time that is drawn short, with a zig-zag and its length. */
export interface Fold {
  readonly from: number
  readonly to: number
  /** In per cent of the width. */
  readonly x: number
  readonly width: number
}

/** A time scale on which long empty stretches are folded. */
export interface FoldedScale {
  /** The place of an instant in per cent of the width. */
  readonly x: (at: number) => number
  readonly folds: readonly Fold[]
}

/** A stretch is folded when it is longer than this many typical ones … */
const FOLD_OVER = 10
/** … and is then drawn as long as this many. */
const FOLDED_AS = 2

/** A scale over these instants. Stretches much longer than the typical one of `lengths` are folded; without `lengths` it is linear. */
export function foldedScale(instants: readonly number[], typicalOf?: readonly number[]): FoldedScale {
  const points = [...new Set(instants.filter(Number.isFinite))].sort((a, b) => a - b)
  const lengths = points.slice(1).map((at, i) => at - (points[i] as number))
  const typical = median(typicalOf ?? [])
  const isFolded = (length: number): boolean => typical > 0 && lengths.length > 2 && length > FOLD_OVER * typical
  const drawn = lengths.map((length) => (isFolded(length) ? FOLDED_AS * typical : length))
  const all = drawn.reduce((total, length) => total + length, 0)
  const starts = drawn.reduce<number[]>((places, length) => [...places, (places.at(-1) as number) + length], [0])
  const percent = (length: number): number => (all === 0 ? 0 : (100 * length) / all)
  const x = (at: number): number => {
    const i = points.findLastIndex((point) => point <= at)
    if (i < 0) return 0
    if (i >= lengths.length) return all === 0 ? 0 : 100
    const share = (at - (points[i] as number)) / (lengths[i] as number)
    return percent((starts[i] as number) + share * (drawn[i] as number))
  }
  const folds = lengths.flatMap((length, i): Fold[] =>
    isFolded(length)
      ? [
          {
            from: points[i] as number,
            to: points[i + 1] as number,
            x: percent(starts[i] as number),
            width: percent(drawn[i] as number),
          },
        ]
      : [],
  )
  return { x, folds }
}

function median(lengths: readonly number[]): number {
  const sorted = lengths.filter((length) => length > 0).sort((a, b) => a - b)
  return sorted[Math.floor((sorted.length - 1) / 2)] ?? 0
}

/** Longer names are not compared: the comparison costs the product of both lengths. */
const COMPARED_MAX = 64

/** Fewer letters are the beginning of too much. */
const BEGINNING_MIN = 3

/** The end of a message about an unknown name: `; did you mean "types"?`, or an empty text. */
export function didYouMean(given: string, known: readonly string[]): string {
  const near = nearName(given, known)
  return near === undefined ? '' : `; did you mean ${JSON.stringify(near)}?`
}

/** The known name with the nearest spelling; undefined when none is near. */
function nearName(given: string, known: readonly string[]): string | undefined {
  if (given.length > COMPARED_MAX) return undefined
  let best: string | undefined
  let bestDistance = 1 + Math.max(1, Math.floor(given.length / 3))
  for (const name of known) {
    const distance = editDistance(given.toLowerCase(), name.toLowerCase())
    if (distance < bestDistance) {
      best = name
      bestDistance = distance
    }
  }
  return best ?? onlyBeginning(given, known)
}

/** The one known name that begins so: `fail` for `failed`. */
function onlyBeginning(given: string, known: readonly string[]): string | undefined {
  if (given.length < BEGINNING_MIN) return undefined
  const [first, ...others] = known.filter((name) => name.toLowerCase().startsWith(given.toLowerCase()))
  return others.length === 0 ? first : undefined
}

/** How many letters must be inserted, removed, changed or swapped with their neighbour. */
function editDistance(a: string, b: string): number {
  let beforeLast: number[] = []
  let last = Array.from({ length: b.length + 1 }, (_, column) => column)
  for (let row = 1; row <= a.length; row++) {
    const current = [row]
    for (let column = 1; column <= b.length; column++) {
      const same = a[row - 1] === b[column - 1]
      let least = Math.min(at(last, column) + 1, at(current, column - 1) + 1, at(last, column - 1) + (same ? 0 : 1))
      const swapped = a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1]
      if (swapped) least = Math.min(least, at(beforeLast, column - 2) + 1)
      current.push(least)
    }
    beforeLast = last
    last = current
  }
  return at(last, b.length)
}

const at = (row: readonly number[], column: number): number => row[column] as number

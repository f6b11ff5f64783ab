import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** Milliseconds of the clock that all processes of a machine share. A wall clock would differ between them while it is adjusted. */
export function now() {
  return Number(process.hrtime.bigint()) / 1e6
}

/** What the handlers of every process noted, a line each. `no` is the number of the process: a pid may be used again. */
export function notesIn(place) {
  return readdirSync(place)
    .filter((name) => name.endsWith('.log'))
    .flatMap((name) => {
      const no = Number(name.slice(0, -4))
      const lines = readFileSync(join(place, name), 'utf8')
        .split('\n')
        .filter((line) => line.endsWith('}'))
      return lines.map((line) => ({ ...JSON.parse(line), no }))
    })
}

/** The most attempts at one time. One that never ended was in flight until its process died. */
export function mostAtOnce(notes, died) {
  const ends = new Map(
    notes
      .filter(({ ended }) => ended !== undefined)
      .map((each) => [`${each.no} ${each.id} ${each.attempt}`, each.ended]),
  )
  const events = notes
    .filter(({ began }) => began !== undefined)
    .flatMap(({ began, id, attempt, no }) => [
      { at: began, by: 1 },
      { at: ends.get(`${no} ${id} ${attempt}`) ?? died.get(no) ?? began, by: -1 },
    ])
    .toSorted((a, b) => a.at - b.at || a.by - b.by)
  let [running, most] = [0, 0]
  for (const { by } of events) {
    running += by
    most = Math.max(most, running)
  }
  return most
}

import { nowMs } from './clock.mjs'
import { ratio, summarise } from './figures.mjs'

/**
 * Measures every case once a round, in an order that is reversed in every second round and rotated by one after it: no
 * case is always first, none always follows the same other one (what that one left in caches and on the disk would be charged
 * to it), and a disturbance of the machine for a minute affects all.
 *
 * @template {{ key: string }} Case
 * @param {{ scenario: string, cases: readonly Case[], rounds: number, tell: (line: string) => void }} plan
 * @param {(each: Case) => Promise<{ [figure: string]: number }>} measure
 */
export async function inRounds({ scenario, cases, rounds, tell }, measure) {
  const results = new Map(cases.map(({ key }) => [key, []]))
  const broken = []
  for (let round = 0; round < rounds; round += 1) {
    for (const each of orderOf(cases, round)) {
      const began = nowMs()
      const title = `${scenario} ${round + 1}/${rounds} ${each.key}`
      try {
        results.get(each.key)[round] = await measure(each)
        tell(`${title} (${((nowMs() - began) / 1000).toFixed(1)} s)`)
      } catch (error) {
        broken.push(`${title}: ${error.message}`)
        tell(`${title} BROKEN: ${error.message}`)
      }
    }
  }
  return new Rounds(results, rounds, broken)
}

function orderOf(cases, round) {
  const from = Math.floor(round / 2) % cases.length
  const order = [...cases.slice(from), ...cases.slice(0, from)]
  return round % 2 === 0 ? order : order.reverse()
}

/** The results of the rounds, by case. */
export class Rounds {
  #results
  #rounds

  constructor(results, rounds, broken) {
    this.#results = results
    this.#rounds = rounds
    this.broken = broken
  }

  /** One value a round. `pick` reads it from a result. */
  values(key, pick) {
    const results = this.#results.get(key) ?? []
    return Array.from({ length: this.#rounds }, (_, round) => {
      const result = results[round]
      return result === undefined ? undefined : pick(result)
    })
  }

  summary(key, pick) {
    return summarise(this.values(key, pick))
  }

  ratio(above, below, pick) {
    return ratio(this.values(above, pick), this.values(below, pick))
  }

  toJSON() {
    return Object.fromEntries(this.#results)
  }
}

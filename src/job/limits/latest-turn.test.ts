import { expect, test } from 'vitest'
import { latestTurn } from './latest-turn.js'
import type { RateUse } from './latest-turn.js'
import { admit, stepOf } from './limits.js'
import type { Candidate, InUse, LimitedLane } from './limits.js'

interface Row {
  used: number
  until: number
}

/** A store with one rate, and one worker that claims whenever `admit` says that it is worth it. */
class RatedStore {
  readonly rows = new Map<number, Row>()
  readonly waiting: Candidate[]
  readonly started = new Map<number, number>()
  readonly #rate: { readonly max: number; readonly perMs: number }

  constructor(rate: { readonly max: number; readonly perMs: number }, weights: readonly number[]) {
    this.#rate = rate
    this.waiting = weights.map((weight, ref) => ({ ref, turn: 1, sort: ref, rateTurn: null, weight }))
  }

  /** Claims once; the time of the next claim. */
  claim(now: number, most: number): number {
    for (const [step, { until }] of this.rows) if (until <= now) this.rows.delete(step)
    const rate = { ...this.#rate, isKeyed: false }
    const candidates = this.waiting.slice(0, most + 1)
    const lane: LimitedLane = { lane: 1, queue: 'q', name: 'n', job: { rate }, ofQueue: undefined, candidates }
    const rows = [...this.rows.values()]
    const used = rows.reduce((sum, row) => sum + row.used, 0)
    const untils = rows.map(({ until }) => until)
    const window = { used, freesAt: Math.min(...untils), lastsUntil: Math.max(...untils) }
    const inUse: InUse = { slots: new Map(), rates: new Map(rows.length === 0 ? [] : [['job n', window]]) }
    const admitted = admit([lane], inUse, { max: most, starting: most, rooms: new Map() }, now)
    for (const { candidate, gates } of admitted.chosen) {
      this.started.set(candidate.ref, now)
      this.waiting.splice(this.waiting.indexOf(candidate), 1)
      const [step, until] = [stepOf(now, rate.perMs), now + rate.perMs]
      const weight = gates.rates[0]?.weight ?? 0
      this.rows.set(step, { used: (this.rows.get(step)?.used ?? 0) + weight, until })
    }
    return admitted.chosen.length > 0 ? now : Math.max(now + 1, Math.min(admitted.opensAt, now + rate.perMs))
  }

  useOf(candidate: Candidate): RateUse {
    const before = this.waiting.filter(({ ref }) => ref < candidate.ref).map(({ weight }) => weight ?? 1)
    const ahead = { jobs: before.length, heaviest: Math.max(1, ...before), isAll: true }
    return { of: 'job n', ...this.#rate, weight: candidate.weight ?? 1, starts: [...this.rows.values()], ahead }
  }
}

function draws(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648
    return Math.floor((state / 2_147_483_648) * below)
  }
}

test('no job starts later than the time that was given, at whatever moment it was asked', () => {
  let [asked, tight] = [0, 0]
  for (let seed = 1; seed <= 200; seed += 1) {
    const draw = draws(seed)
    const rate = { max: 1 + draw(80), perMs: [100, 1_000, 60_000][draw(3)] as number }
    const isWeighted = draw(3) === 0
    const weights = Array.from({ length: 1 + draw(200) }, () => (isWeighted ? 1 + draw(rate.max) : 1))
    const store = new RatedStore(rate, weights)
    const promised: { readonly ref: number; readonly latest: number; readonly at: number }[] = []
    for (let now = 1_000_000; store.waiting.length > 0;) {
      const candidate = store.waiting[draw(store.waiting.length)] as Candidate
      promised.push({ ref: candidate.ref, latest: latestTurn(store.useOf(candidate), now) as number, at: now })
      const next = store.claim(now, 1 + draw(20))
      now = next + (next === now ? 0 : draw(2))
    }
    for (const { ref, latest, at } of promised) {
      const start = store.started.get(ref) as number
      expect(start, `seed ${seed}: job ${ref}, asked at ${at}`).toBeLessThanOrEqual(latest)
      if (isWeighted) continue
      asked += 1
      if (latest - start <= rate.perMs / 4) tight += 1
    }
  }
  // A time that is far too late would be true and of no use. Weights leave gaps that cannot be foreseen.
  expect(tight / asked).toBeGreaterThan(0.8)
})

test('without all jobs before it there is no time', () => {
  const ahead = { jobs: 1_000, heaviest: 1, isAll: false }
  expect(latestTurn({ of: 'job n', max: 1, perMs: 1_000, weight: 1, starts: [], ahead }, 5)).toBeUndefined()
})

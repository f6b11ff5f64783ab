import type { Random } from '../../src/testing/simulation/random.js'
import { HANDLER_BEHAVIOURS } from './cancellable-jobs.js'
import { FATES } from './banking-jobs.js'

/** A job and its payload. */
export function anyJob(random: Random): [string, object] {
  const ms = random.chance(0.5) ? random.int(0, 20) : random.int(100, 4_000)
  const dice = random.int(0, 99)
  if (dice < 19) return ['steady', { ms, n: dice }]
  if (dice < 25) return ['sleeper', { ms: random.int(100, 2_000), fails: random.int(0, 1) }]
  if (dice < 37) return ['flaky', { ms: Math.min(ms, 300), fails: random.int(1, 4) }]
  if (dice < 43) return ['doomed', { ms: Math.min(ms, 300) }]
  if (dice < 47) return ['quitter', {}]
  if (dice < 52) return ['dozer', { times: random.int(1, 3) }]
  if (dice < 57) return ['parent', { ms: Math.min(ms, 500) }]
  if (dice < 62) return ['rare', { ms: Math.min(ms, 500) }]
  if (dice < 64) return ['pill', { kills: random.pick([1, 2, 99]) }]
  if (dice < 80) return ['patient', { ms: Math.max(ms, 50), behaviour: random.pick(HANDLER_BEHAVIOURS) }]
  if (dice < 84) return ['resting', { restMs: random.int(50, 1_500) }]
  if (dice < 85) return ['deaf', { ms: random.int(30_500, 33_000) }]
  const fate = random.pick(FATES)
  return [random.pick(['banker', 'scenario']), { ms: Math.min(ms, 1_500), fate, spawns: random.chance(0.3) }]
}

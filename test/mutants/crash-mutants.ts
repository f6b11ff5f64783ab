import type { Claimed, ClaimRequest, Store } from '../../src/store/store.js'
import type { Mutant } from './mutants.js'
import { statements, verbs } from './mutants.js'

/** Planted bugs of the crash rule: the fleet with poison jobs (`test/campaign/poison.ts`) must find every one. */
export const CRASH_MUTANTS: readonly Mutant[] = [
  statements('the first crash makes a suspect', { requeueJob: ['streak = ?', 'streak = 2 * ?'] }),
  statements('a failed attempt does not end the streak', { requeueJob: ['streak = ?', 'streak = max(streak, ?)'] }),
  statements('held jobs count as begun', { leasedBodies: ['l.started_at', 'coalesce(l.started_at, 1)'] }),
  statements('a crash outside quarantine is charged', {
    readLeases: ['select fence, quarantined,', 'select fence, 1 as quarantined,'],
  }),
  statements('a crash in a quarantine of several is charged', {
    readLeases: ['select fence, quarantined,', 'select fence, min(quarantined, 1) as quarantined,'],
  }),
  statements('a crash in quarantine is not charged', {
    readLeases: ['select fence, quarantined,', 'select fence, 0 as quarantined,'],
  }),
  statements('the end of a quarantine is not written', {
    endQuarantine: ['set quarantined = 0', 'set quarantined = quarantined'],
  }),
  statements('every quarantine is as short as the first', {
    claimedBodies: ['l.crashes, l.streak,', 'l.crashes, min(l.streak, 2),'],
  }),
  statements('two crashes are charged at once', { requeueJob: ['crashes = ?', 'crashes = 2 * ? - crashes'] }),
  statements('suspects that crashed together are not distinguished from others', {
    readySuspects: ['seq, sort, streak', 'seq, sort, 2 as streak'],
    suspectsWait: ['min(streak)', '2'],
  }),
  claims('suspects are claimed before other work that is due its time', ({ suspects }) =>
    suspects === 'last' ? 'first' : suspects,
  ),
  claims('suspects begin beside other work', ({ suspects }) => (suspects === 'none' ? 'first' : suspects)),
  claims('suspects are never claimed', () => 'none'),
  verbs('a quarantine never ends', () => ({ endQuarantine: () => new Promise<void>(() => undefined) })),
  verbs('a suspect is parked one crash too early', (store) => ({
    rescueJobs: (...[worker, beat, settled]: Parameters<Store['leases']['rescueJobs']>) =>
      store.leases.rescueJobs(
        worker,
        beat,
        settled.map((job) => (job.crashes > 0 ? { ...job, to: 'parked' as const, streak: 0 } : job)),
      ),
  })),
  verbs('a suspect is never parked', (store) => ({
    rescueJobs: (...[worker, beat, settled]: Parameters<Store['leases']['rescueJobs']>) =>
      store.leases.rescueJobs(
        worker,
        beat,
        settled.map((job) => (job.to === 'parked' ? { ...job, to: 'ready' as const, streak: 3 } : job)),
      ),
  })),
]

function claims(name: string, suspects: (request: ClaimRequest) => ClaimRequest['suspects']): Mutant {
  return verbs(name, (store) => ({
    claimJobs: (request: ClaimRequest): Promise<Claimed> =>
      store.leases.claimJobs({ ...request, suspects: suspects(request) }),
  }))
}

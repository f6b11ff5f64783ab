import assert from 'node:assert/strict'
import type { Firing, PlannedTick, PutSchedule, ScheduleRow, TickRow } from '../../src/store/schedules.js'
import type { NewJob } from '../../src/store/store.js'
import type { ContractFixture } from './fixture.js'

/** Operations on a schedule named "nightly". */

export function planned(b: ContractFixture, change: Partial<PutSchedule> & { readonly id: string }): PutSchedule {
  return { spec: '{"n":1}', createdAt: b.clock.now, pausedAt: null, nextAt: null, ...change }
}

export async function due(b: ContractFixture): Promise<{ readonly row: ScheduleRow; readonly at: number }> {
  const at = b.clock.now - 10
  await b.store.schedules.putSchedule(planned(b, { id: 'nightly', nextAt: at }), null)
  return { row: await read(b, 'nightly'), at }
}

export async function read(b: ContractFixture, id: string): Promise<ScheduleRow> {
  const { schedule } = await b.store.schedules.readSchedule(id)
  assert.ok(schedule, `schedule ${id} is there`)
  return schedule
}

export function tick(b: ContractFixture, at: number, change: Partial<NewJob> = {}): PlannedTick {
  return { at, byHand: false, outcome: 'ran', reason: null, job: b.job(change) }
}

export function fire({ id, revision }: ScheduleRow, ticks: readonly PlannedTick[], change: Partial<Firing>): Firing {
  const how = {
    overlap: 'allow',
    onDuplicate: 'return',
    keepCancelledMs: Infinity,
    nextAt: null,
    pausedAt: null,
  } as const
  return { id, revision, ticks, ...how, ...change }
}

export async function fired(b: ContractFixture, firing: Firing): Promise<readonly TickRow[]> {
  const told = await b.store.schedules.fireTicks(firing)
  assert.notEqual(told, 'stale')
  return told as readonly TickRow[]
}

export function ledger(b: ContractFixture): Promise<readonly TickRow[]> {
  return b.store.schedules.readTicks('nightly', null, 100)
}

export function skipped(b: ContractFixture, at: number, reason: string): TickRow {
  return { at, byHand: false, outcome: 'skipped', reason, job: null, firedAt: b.clock.now }
}

/**
 * The statements that shared verbs run: each store has them under these names, with the same values in the same order and the
 * same columns. A value that is the store's now may be null, for the database's own clock.
 */
export type SharedStatement =
  // schedules.ts
  | 'readSchedule'
  | 'listSchedules'
  | 'addSchedule'
  | 'putSchedule'
  | 'lockSchedule'
  | 'moveSchedule'
  | 'dropSchedule'
  | 'dropTicks'
  | 'dueSchedules'
  | 'nextSchedule'
  | 'firedTicks'
  | 'putTicks'
  | 'trimTicks'
  | 'readTicks'
  | 'waitingDue'
  | 'readyDue'
  // pauses.ts
  | 'holdsClaim'
  | 'readPause'
  | 'putPause'
  | 'dropPause'
  // groups.ts
  | 'shareGroups'
  | 'addGroups'
  | 'keepGroups'
  | 'isMember'
  | 'sealGroup'
  | 'readGroup'
  // requests.ts
  | 'dropRequests'
  | 'readRequests'

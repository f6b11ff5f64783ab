/**
 * The statements that shared verbs run. Each store defines them under these names, with the same parameters in the same
 * order and the same columns. A parameter for the store's now may be null: then the statement reads the database's
 * clock.
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
  // sequences.ts
  | 'addList'
  | 'findList'
  | 'addLeftover'
  | 'dropLeftover'
  | 'hastenLeftover'
  | 'markSequence'
  | 'putWorkflow'
  | 'lockWorkflow'
  | 'startWorkflow'
  | 'resetWorkflow'
  | 'clearAttempts'
  | 'readSequence'
  | 'readOutput'

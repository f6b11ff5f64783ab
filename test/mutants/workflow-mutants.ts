import { statements } from './mutants.js'
import type { Mutant } from './mutants.js'

/** Planted bugs of workflows that the campaign of workflows finds within a few seeds. */
export const WORKFLOW_MUTANTS: readonly Mutant[] = [
  statements('an event wakes no workflow', {
    wakeWorkflow: ['and fence is null and', 'and fence is null and false and'],
  }),
  statements('an event is taken twice', {
    takeInbox: ['and id is null', 'and false and id is null'],
    markTaken: ['and id is not null', 'and false and id is not null'],
  }),
  statements('an answer is written without its fence', {
    appendStep: ['where seq = ? and fence = ?', 'where seq = ? and ? is not null'],
    holdsClaim: ['fence = ?', '? is not null'],
  }),
]

/** Those that need more seeds: a whole campaign tries them. */
export const RARE_WORKFLOW_MUTANTS: readonly Mutant[] = [
  statements('a wake-up time is missed', { dueWakes: ['wake_at <= ?', 'wake_at <= ? - 600000'] }),
  statements('a suspension does not see a cancel', { isWaitOver: ["kind = 'cancel' or", 'false or'] }),
  statements('a suspension does not read the inbox', {
    isWaitOver: ['and taken = 0\n', 'and taken = 0 and false\n'],
  }),
  statements('an event is removed before it is taken', {
    readInbox: ['and taken = 0', 'and taken = 0 and number % 3 > 0'],
  }),
  statements('an answer replaces another', {
    appendStep: ['where no is null', 'where no is null or true'],
    readLog: ['where s.seq = ? and s.run = ?', 'where s.seq = ? and s.run = ? and (s.no is null or s.no % 4 <> 2)'],
  }),
  statements('an answer is forgotten by a claim', {
    readLog: ['where s.seq = ? and s.run = ?', 'where s.seq = ? and s.run = ? and (s.no is null or s.no % 4 <> 2)'],
  }),
  statements('a number is given again after a retry', { keepNumbers: ['where seq = ?', 'where seq = ? and false'] }),
  statements('the end of a called job that keeps nothing is lost', {
    calledAmong: ["on_failure = 'wake'", "on_failure = 'none'"],
  }),
]

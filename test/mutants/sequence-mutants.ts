import { statements } from './mutants.js'
import type { Mutant } from './mutants.js'

/** Planted bugs of sequences; the campaign of sequences must find every one. */
export const SEQUENCE_MUTANTS: readonly Mutant[] = [
  statements('progress counts an item that has only failed', {
    readSequence: ['s.address, s.no\n', 's.address, coalesce(s.no, 0) as no\n'],
  }),
  statements('a reset keeps the output', { resetWorkflow: ['set run = run + 1', 'set run = run'] }),
  statements('a reset lets a late result in', {
    resetWorkflow: ['set run = run + 1', 'set run = run'],
    appendStep: ['where seq = ? and fence = ?', 'where seq = ? and ? is not null'],
    holdsClaim: ['fence = ?', '? is not null'],
    readOutput: ['s.no is not null', 's.no is not null and s.called_at > 0'],
  }),
  statements('a row is written by a claim that was lost', {
    appendStep: ['where seq = ? and fence = ?', 'where seq = ? and ? is not null'],
  }),
  statements('an item is skipped after a claim', {
    readPosition: ['s.address, s.no,', "printf('%09d', cast(s.address as integer) + 1) as address, s.no,"],
  }),
  statements('an item that is recorded runs again after a claim', {
    readPosition: ['order by s.address desc', 'order by s.address'],
  }),
  statements('an item is recorded twice', {
    readPosition: ['order by s.address desc', 'order by s.address'],
    appendStep: ['where no is null', 'where no is null or true'],
    settleStep: ['where no is null', 'where no is null or true'],
  }),
  statements('a pause is not seen between two items', {
    requestOf: ['where seq = ?', 'where seq = ? and false'],
  }),
  statements('the attempts of an item are forgotten at a crash', {
    settleStep: ['values (?, ?, ?, ?, ?, ?, ?,', 'values (?, ?, ?, ?, ?, ?, 0 * ?,'],
    requeueJob: ['attempt = ?, retries = ?', 'attempt = ?, retries = 0 * ?'],
  }),
]

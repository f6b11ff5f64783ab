import { show } from '../../codec/show.js'
import { InvalidOptionsError } from '../../errors.js'
import type { Problem } from '../../errors.js'

/** Throws when the arguments of `ctx.progress` are no amounts. */
export function checkProgress(done: unknown, total: unknown): void {
  const problems: Problem[] = []
  if (!isAmount(done)) problems.push({ path: 'done', message: `must be a number of 0 or more, got ${show(done)}` })
  if (total !== undefined && !isAmount(total))
    problems.push({ path: 'total', message: `must be a number of 0 or more, got ${show(total)}` })
  if (isAmount(done) && isAmount(total) && done > total)
    problems.push({ path: 'done', message: `must be at most the total of ${total}, got ${done}` })
  if (problems.length > 0) throw new InvalidOptionsError('ctx.progress()', problems)
}

function isAmount(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0
}

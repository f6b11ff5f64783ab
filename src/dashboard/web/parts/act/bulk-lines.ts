import type { BulkFields, PreviewAnswer } from '../../../protocol.js'
import { bounded, count, plural, whole } from '../../format/number.js'
import { listed, sentence, visible } from '../../format/text.js'
import { clockTime } from '../../format/time.js'
import type { Zone } from '../../format/time.js'

export interface PreviewLines {
  readonly title: string
  readonly states: string
  readonly scope: string
  readonly confirm: string
  readonly count: number
  readonly isDangerous: boolean
}

/** What a bulk would do, in words: how many, in which states, and what it leaves alone. */
export function previewLines({ verb, count: found, states, untouched, asOf }: PreviewAnswer, zone: Zone): PreviewLines {
  const word = sentence(verb.replace('bulk.', ''))
  const parts = Object.entries(states).flatMap(([state, each]) =>
    each && each.n > 0 ? [`${bounded(each.n, each.exact)} ${state}`] : [],
  )
  const left =
    untouched.n === 0
      ? ''
      : ` ${bounded(untouched.n, untouched.exact)} that match are in a state that it does not touch.`
  return {
    title: `${word} ${bounded(found.n, found.exact)} ${found.n === 1 ? 'job' : 'jobs'}?`,
    states:
      found.n === 0
        ? 'No job that matches is in a state that this applies to.'
        : `${sentence(listed(parts))}. For example:`,
    scope: `Jobs made after ${clockTime(asOf, zone, true)} are not included.${left}`,
    confirm: `${word} ${plural(found.n, 'job')}`,
    count: found.n,
    isDangerous: verb === 'bulk.cancel' || verb === 'bulk.delete',
  }
}

/** What tells one job of a sample from the others: its title, its key, its error, its id. */
export function exampleText({ id, job, title, key, error }: PreviewAnswer['examples'][number]): string {
  const texts = [job, title, key === null ? null : `key ${key}`, error?.name ?? null, id.slice(0, 8)]
  return texts
    .filter((text) => text !== null)
    .map(visible)
    .join(' · ')
}

/** How far a bulk is, and why it skipped jobs. */
export function bulkLine({ verb, state, total, changed, held, moved }: BulkFields): {
  readonly text: string
  readonly done: number
  readonly total: number
} {
  const word = { running: 'so far', done: 'done', stopped: 'stopped', failed: 'failed' }[state]
  const skipped = [
    held === 0 ? '' : `${count(held)} held by their key`,
    moved === 0 ? '' : `${count(moved)} had left their state`,
  ].filter((each) => each !== '')
  const skips = skipped.length === 0 ? '' : `; skipped: ${listed(skipped)}`
  const text = `${sentence(verb.replace('bulk.', ''))}, ${word}: ${whole(changed)} of ${bounded(total.n, total.exact)}${skips}.`
  return { text, done: changed + held + moved, total: Math.max(1, total.n) }
}

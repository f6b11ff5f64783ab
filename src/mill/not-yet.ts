import { NotYetError } from '../errors.js'

/** How a verb that is not built yet is refused: its promise rejects, or the call throws. */
interface Refusal {
  readonly how: 'reject' | 'throw'
  /** What to use until it is built. */
  readonly instead: string
}

const LIST = 'list jobs with mill.find(filter) and schedules with mill.schedules.list()'

/** Verbs that are announced and not built yet. They are not in the type `Mill`: TypeScript refuses them too. */
export const NOT_YET_VERBS: { readonly [verb: string]: Refusal } = {
  dashboard: { how: 'reject', instead: LIST },
}

/** Refuses them by name: "mill.send is not a function" would say neither that it is planned nor what to use instead. */
export function refuseNotYet(prototype: object): void {
  for (const [verb, { how, instead }] of Object.entries(NOT_YET_VERBS)) {
    if (how === 'reject')
      define(prototype, verb, { value: () => Promise.reject(new NotYetError(`mill.${verb}()`, instead)) })
    else define(prototype, verb, { value: () => refuse(`mill.${verb}()`, instead) })
  }
}

function define(prototype: object, verb: string, descriptor: PropertyDescriptor): void {
  Object.defineProperty(prototype, verb, descriptor)
}

function refuse(what: string, instead: string): never {
  throw new NotYetError(what, instead)
}

/** One call through a seam of the product: the n-th call of this name by this process. Named so, a repeat finds it again. */
export interface Seam {
  readonly process: string
  /** A verb of the store, or `statement:name`, `hook:start`, `log`, `hint`, `timer`. */
  readonly call: string
  readonly nth: number
}

/** What the call does instead of what it should. */
export type SeamFault =
  /** It fails before it acts; other calls work. */
  | 'fails before'
  /** It fails before it acts, and says that the whole store cannot be reached. */
  | 'unreachable before'
  /** It acts, and its answer is lost. */
  | 'fails after'
  | 'unreachable after'
  /** It acts, and its answer comes later than half a lease; a timer or a hint comes so late. */
  | 'late'
  /** It acts, and its process is suspended until its lease is lost. */
  | 'lease lost'
  /** A callback of the app throws, returns a promise that rejects, or one that never settles. */
  | 'throws'
  | 'rejects'
  | 'never answers'
  /** The server refuses a statement because of a deadlock. */
  | 'deadlock'
  /** A hint is lost, or comes twice. */
  | 'lost'
  | 'twice'

const STORE_FAULTS = [
  'fails before',
  'unreachable before',
  'fails after',
  'unreachable after',
  'late',
  'lease lost',
] as const satisfies readonly SeamFault[]

const FAULTS: Readonly<Record<string, readonly SeamFault[]>> = {
  statement: ['fails before', 'fails after', 'deadlock', 'late'],
  'hook:enqueue': ['throws', 'rejects'],
  'hook:start': ['throws', 'rejects', 'never answers'],
  'hook:settle': ['throws', 'rejects', 'never answers'],
  log: ['throws', 'rejects', 'never answers'],
  hint: ['lost', 'late', 'twice'],
  timer: ['late', 'lease lost'],
  insertJobsIn: ['fails before'],
  sealGroupIn: ['fails before'],
  settleJobIn: ['fails before'],
}

/** Every way in which a call of this name can fail. */
export function faultsOf(call: string): readonly SeamFault[] {
  return FAULTS[call.startsWith('statement:') ? 'statement' : call] ?? STORE_FAULTS
}

/** Which calls of a run are counted. */
export type SeamGroup = 'store' | 'statements' | 'callbacks'

export interface Strike {
  readonly seam: Seam
  readonly fault: SeamFault
}

export function textOf({ process, call, nth }: Seam): string {
  return `${process} ${call} ${nth}`
}

export function seamOf(text: string): Seam {
  const [process = '', call = '', nth = ''] = text.split(' ')
  return { process, call, nth: Number(nth) }
}

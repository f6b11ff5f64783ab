import type { Log } from '../../world/log.js'
import type { World } from '../../world/world.js'
import type { Mill } from '../../mill/mill-type.js'
import type { MillInternals } from '../../mill/internals.js'
import type { DashboardOptions } from '../../mill/dashboard-options.js'
import type { Absent, Fields } from '../protocol/frames.js'
import type { Role } from '../protocol/verbs.js'
import type { Assets } from './assets.js'
import type { Show } from './show/redact.js'
import type { Bulks } from './act/bulks.js'
import type { Scanner } from './search/scan.js'
import type { SharedReads } from './live/shared-reads.js'

/** What every part of the server uses. */
export interface Parts {
  readonly mill: Mill
  readonly internals: MillInternals
  readonly world: World
  readonly log: Log
  readonly options: DashboardOptions
  readonly assets: Assets
  readonly shared: SharedReads
  readonly showFor: (role: Role) => Show
  /** The mill, or the dashboard, has rules that hide. */
  readonly hasRules: boolean
  /** A job with `encrypt`, or one that may be: its name is not registered here and the mill has keys. */
  readonly isSealed: (job: string) => boolean
  readonly isWorkflow: (job: string) => boolean
  readonly scanner: Scanner
  readonly bulks: Bulks
  /** Of the package. */
  readonly version: string
}

/** The state of a view. */
export interface View {
  readonly fields: Fields
  /** In the order of the view. */
  readonly rows: readonly (readonly [id: string, row: unknown])[]
  readonly cursor?: string | null | undefined
  readonly absent?: Absent | undefined
}

/** What was read of the store, as a view for one role: the store is read once for all of them. */
export type MakeView = (show: Show) => View

/** A topic that does not exist. */
export class ViewGone extends Error {
  readonly reason: 'not-found' | 'not-allowed'

  constructor(text: string, reason: 'not-found' | 'not-allowed' = 'not-found') {
    super(text)
    this.reason = reason
  }
}

/** A request that the user can correct: its text is shown. */
export class Refusal extends Error {
  readonly status: number
  readonly code: 'bad-request' | 'bad-search' | 'not-allowed' | 'not-found' | 'too-many' | 'not-in-this-version'
  readonly hint: string | null
  readonly at: { readonly from: number; readonly to: number } | undefined
  readonly retryMs: number | undefined

  constructor(
    code: Refusal['code'],
    text: string,
    more: {
      readonly hint?: string | null
      readonly at?: { readonly from: number; readonly to: number }
      readonly retryMs?: number
    } = {},
  ) {
    super(text)
    this.code = code
    this.status = STATUS[code]
    this.hint = more.hint ?? null
    this.at = more.at
    this.retryMs = more.retryMs
  }
}

const STATUS: Readonly<Record<Refusal['code'], number>> = {
  'bad-request': 400,
  'bad-search': 400,
  'not-allowed': 403,
  'not-found': 404,
  'too-many': 503,
  'not-in-this-version': 501,
}

import type { JobRow } from './jobs.js'
import type { Count, CountsByState } from './rows.js'
import type { Rows } from './frames.js'
import type { Sort } from './topics.js'
import type { Role, Verb } from './verbs.js'

export interface LoginRequest {
  /** From the fragment of the printed link. */
  readonly token: string
}

/** Who the user is, and what the page must know before it draws. */
export interface SessionAnswer {
  readonly role: Role
  readonly actor: string
  /** The verbs that this user may use. */
  readonly verbs: readonly Verb[]
  /** Send it as X-Millrace-Csrf. */
  readonly csrf: string
  /** False: the app that mounted the dashboard signs its users in and out. */
  readonly canSignOut: boolean
  readonly title: string
  /** 'production', 'staging': the badge; null without one. */
  readonly environment: string | null
  /** Changes with each build of the web side. */
  readonly build: string
  /** The version of the package. */
  readonly version: string
  /** 'SQLite' or 'PostgreSQL', and its short name; no path, no host. */
  readonly store: { readonly engine: string; readonly name: string }
  /** Links to traces and logs of a job: the name, and the URL with {id}, {job}, {queue}, {trace}, {meta.x} and {captured.x}. */
  readonly links: readonly { readonly name: string; readonly url: string }[]
  readonly now: number
}

export interface ViewRequest {
  readonly topic: string
  /** The id of the newest frame of this topic that the tab has. */
  readonly have?: string | undefined
  /** A later page: the `cursor` of the page before. */
  readonly cursor?: string | undefined
}

export interface StreamRequest {
  /** At most 16. */
  readonly topics: readonly string[]
  /** By topic: the id of the newest frame that the tab has. Without it, the stream begins with a snapshot. */
  readonly have?: Readonly<Record<string, string>> | undefined
}

export interface SearchRequest {
  /** A list: at most 1,000 characters in the language of search.ts. */
  readonly query: string
  readonly sort?: Sort | undefined
  /** Only workflows. */
  readonly workflows?: boolean | undefined
  readonly cursor?: string | undefined
  /** Rows wanted: 1 to 50. Default 50. */
  readonly limit?: number | undefined
}

/** One part of a search. An answer may have no rows and a cursor: nothing matched as far as the search came. */
export interface SearchAnswer {
  readonly now: number
  readonly rows: Rows<JobRow>
  readonly order: readonly string[]
  /** Null: there are no more jobs. */
  readonly cursor: string | null
  /** Jobs that were tested one by one; 0 when an index answered all of it. */
  readonly scanned: number
  /** Searched back to here. */
  readonly reachedAt: number | null
  /** Why terms did not match for this role: "payload.card is hidden from viewers". */
  readonly hidden: readonly string[]
}

export interface CompleteRequest {
  readonly text: string
  readonly caret: number
}

export interface Completion {
  /** What replaces the text from `from` to `to`. */
  readonly insert: string
  readonly label: string
  /** An example, or what it means. */
  readonly hint: string
  readonly count: Count | null
}

export interface CompleteAnswer {
  readonly from: number
  readonly to: number
  readonly options: readonly Completion[]
}

export interface PreviewRequest {
  readonly verb: Extract<Verb, `bulk.${'retry' | 'cancel' | 'pause' | 'resume' | 'delete'}`>
  /** The jobs that match a search whose terms are served by an index, the jobs of a fingerprint, or these. */
  readonly of: { readonly query: string } | { readonly fingerprint: string } | { readonly ids: readonly string[] }
}

export interface PreviewAnswer {
  /** The `target` of the act. It is valid for ten minutes. */
  readonly id: string
  readonly verb: PreviewRequest['verb']
  readonly count: Count
  /** Affected jobs by state. */
  readonly states: Partial<CountsByState>
  /** Matching jobs that the verb does not touch. */
  readonly untouched: Count
  /** At most five. */
  readonly examples: readonly JobRow[]
  /** Jobs that were made after this instant are not included. */
  readonly asOf: number
  /** Above 1,000 jobs the count is typed into the dialog. */
  readonly mustType: boolean
}

export type ErrorCode =
  | 'bad-request'
  | 'bad-search'
  | 'not-allowed'
  | 'not-found'
  | 'too-large'
  | 'too-many'
  | 'store'
  | 'not-in-this-version'
  | 'failed'

/** The body of every refusal but the empty ones. */
export interface ErrorBody {
  readonly error: {
    /** Also in the log of the server. */
    readonly id: string
    readonly code: ErrorCode
    /** What is wrong, in a sentence. */
    readonly text: string
    /** What to try. */
    readonly hint: string | null
    /** Where in the search text. */
    readonly at?: { readonly from: number; readonly to: number } | undefined
    /** For 'too-many' and 'store': try again then. */
    readonly retryMs?: number | undefined
  }
}

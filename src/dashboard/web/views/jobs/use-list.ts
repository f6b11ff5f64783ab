import { useEffect, useRef, useState } from 'preact/hooks'
import type { JobRow, ListFields, SearchAnswer, Snapshot, Sort } from '../../../protocol.js'
import { useApp } from '../../app-context.js'

/** A list as the user first saw it, with what they asked for since. */
export interface KeptList {
  /** The ids in the order of the first sight; they never move by themselves. */
  readonly order: readonly string[]
  readonly seen: Readonly<Record<string, JobRow>>
  /** Ids at the top that the user has not seen. */
  readonly newer: number
  readonly more: MorePages
  /** Takes over the order of the server. */
  readonly refresh: () => void
  readonly loadMore: () => void
}

interface MorePages {
  readonly cursor: string | null
  readonly isLoading: boolean
  readonly reached: Pick<SearchAnswer, 'scanned' | 'reachedAt'> | undefined
  readonly problem: string | undefined
}

type View = Snapshot<ListFields, JobRow>

/**
 * The newest state of a list that can be shown: until a new search has an answer the rows of the one before stay, and a search
 * with a mistake in it never clears them.
 */
export function useLastGood(newest: View | undefined): View | undefined {
  const last = useRef<View | undefined>(undefined)
  if (newest !== undefined && newest.fields.problem === null) last.current = newest
  if (newest === undefined || newest.fields.problem === null || last.current === undefined)
    return newest ?? last.current
  const { fields, ...rows } = last.current
  return { ...rows, fields: { ...fields, problem: newest.fields.problem } }
}

/** Keeps a live list still: rows change in place, new ones wait for the pill, left ones stay until the refresh. */
export function useList(view: View | undefined, sort: Sort, isWorkflows: boolean): KeptList {
  const { api } = useApp()
  const [kept, setKept] = useState<{ topic: string; order: readonly string[] } | undefined>(undefined)
  const [more, setMore] = useState<MorePages>({
    cursor: null,
    isLoading: false,
    reached: undefined,
    problem: undefined,
  })
  const seen = useRef<Record<string, JobRow>>({})
  if (view !== undefined) Object.assign(seen.current, view.rows)
  const adopt = (): void => {
    if (view === undefined) return
    seen.current = { ...view.rows }
    setKept({ topic: view.topic, order: view.order })
    setMore({ cursor: view.cursor, isLoading: false, reached: view.fields, problem: undefined })
  }
  useEffect(() => {
    if (view !== undefined && kept?.topic !== view.topic) adopt()
  }, [view?.topic])
  const isCurrent = kept !== undefined && kept.topic === view?.topic
  const order = isCurrent ? kept.order : (view?.order ?? [])
  const loadMore = async (): Promise<void> => {
    if (view === undefined || more.isLoading) return
    setMore({ ...more, isLoading: true })
    try {
      const query = { query: view.fields.query, sort, workflows: isWorkflows, cursor: more.cursor ?? undefined }
      const answer = await api.post<SearchAnswer>('search', query)
      Object.assign(seen.current, answer.rows)
      setKept({ topic: view.topic, order: [...order, ...answer.order.filter((id) => !order.includes(id))] })
      setMore({ cursor: answer.cursor, isLoading: false, reached: answer, problem: undefined })
    } catch (error) {
      setMore({ ...more, isLoading: false, problem: (error as Error).message })
    }
  }
  const newer = view === undefined ? 0 : view.order.filter((id) => !order.includes(id)).length + view.fields.newer.n
  return { order, seen: seen.current, newer, more, refresh: adopt, loadMore: () => void loadMore() }
}

import { useEffect, useState } from 'preact/hooks'
import type { JobPart, JobPartAnswer } from '../../../protocol.js'
import { useApp } from '../../app-context.js'

/** A part of a job that is read when it is shown. `version` changes when it must be read again. */
export interface PartState<Part extends JobPart> {
  readonly answer: JobPartAnswer[Part] | undefined
  readonly problem: string | undefined
  readonly readAll: () => void
}

export function usePart<Part extends JobPart>(id: string, part: Part, version: string): PartState<Part> {
  const { api } = useApp()
  const [state, setState] = useState<{ answer?: JobPartAnswer[Part]; problem?: string }>({})
  const read = (rest: string): void => {
    const path = `job/${encodeURIComponent(id)}/${part}${rest}`
    api.get<JobPartAnswer[Part]>(path).then(
      (answer) => setState({ answer }),
      (error: Error) => setState({ problem: error.message }),
    )
  }
  useEffect(() => read(''), [id, part, version])
  return { answer: state.answer, problem: state.problem, readAll: () => read('?all=1') }
}

import { useEffect, useRef, useState } from 'preact/hooks'
import type { CompleteAnswer } from '../../protocol.js'
import { useApp } from '../app-context.js'
import { Icon } from '../icons.js'
import { Combobox } from '../parts/combobox.js'
import { jobsHref } from '../route.js'
import { words } from '../texts.js'

/** A search begins this long after the last key. */
const PAUSE_MS = 250

/** The search box of the top bar: it holds the text as typed, completes it, and shows the jobs that it finds. */
export function SearchBox() {
  const { router, api } = useApp()
  const { page, query } = router.route.value
  const isList = page === 'jobs' || page === 'workflows'
  const given = isList ? (query['q'] ?? '') : ''
  const [typed, setTyped] = useState({ text: given, caret: 0 })
  const [answer, setAnswer] = useState<CompleteAnswer | undefined>(undefined)
  const { text, caret } = typed
  // A route that this box has set itself is older than what was typed since.
  const own = useRef(given)
  useEffect(() => {
    if (given !== own.current) setTyped({ text: given, caret: given.length })
    own.current = given
  }, [given])
  // An older answer never replaces a newer one.
  const asked = useRef(0)
  const complete = (): void => {
    const number = ++asked.current
    const take = (next: CompleteAnswer | undefined): void => {
      if (number === asked.current) setAnswer(next)
    }
    api.post<CompleteAnswer>('complete', { text, caret }).then(take, () => take(undefined))
  }
  useEffect(() => {
    if (text === given) return undefined
    const timer = setTimeout(() => {
      complete()
      own.current = text
      if (isList) router.set({ q: text === '' ? undefined : text }, true)
    }, PAUSE_MS)
    return () => clearTimeout(timer)
  }, [text])
  const take = (index: number): void => {
    const option = answer?.options[index]
    if (answer === undefined || option === undefined) return
    const before = text.slice(0, answer.from) + option.insert
    setTyped({ text: before + text.slice(answer.to), caret: before.length })
  }
  return (
    <form class="top-search" role="search" onSubmit={(event) => event.preventDefault()}>
      <Icon name="search" />
      <Combobox
        label={words.searchShort}
        placeholder={words.search}
        text={text}
        choices={answer?.options ?? []}
        onText={(next, at) => setTyped({ text: next, caret: at })}
        onEnter={complete}
        onChoose={take}
        onSubmit={() => (page === 'workflows' ? router.set({ q: text }) : router.go(jobsHref(text)))}
      />
      <span class="kbd">/</span>
    </form>
  )
}

import { existsSync, readFileSync } from 'node:fs'

/**
 * What a process wrote down about its own runs, in a file opened for appending: the kernel has each line when the call
 * returns, so a kill -9 loses none. `s id` a handler began, `e id` it ended, `l id` its worker lost its lease meanwhile.
 * @returns {{ starts: string[], ends: string[], lost: string[], troubles: string[] }}
 */
export function readDiary(path) {
  const diary = { starts: [], ends: [], lost: [], troubles: [] }
  if (!existsSync(path)) return diary
  const lines = readFileSync(path, 'utf8').split('\n')
  for (const line of lines) {
    const rest = line.slice(2)
    if (line.startsWith('s ')) diary.starts.push(rest)
    else if (line.startsWith('e ')) diary.ends.push(rest)
    else if (line.startsWith('l ')) diary.lost.push(rest)
    else if (line.startsWith('t ')) diary.troubles.push(rest)
  }
  return diary
}

/** A handler has begun and not ended. */
export function isBusy({ starts, ends }) {
  return starts.length > ends.length
}

/** How often each job began, over many diaries. */
export function countStarts(diaries) {
  const counts = new Map()
  for (const { starts } of diaries) for (const id of starts) counts.set(id, (counts.get(id) ?? 0) + 1)
  return counts
}

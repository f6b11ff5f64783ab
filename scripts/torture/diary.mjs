import { existsSync, readFileSync } from 'node:fs'

/**
 * The records of a process about its own runs, in a file opened for appending: the kernel has each line when the call
 * returns, so a kill -9 loses none. `s id ns queue` a handler began, `e id` it ended, `f id` it failed on purpose, `l id` its
 * worker lost its lease meanwhile. Times are the machine's monotonic clock, so that they compare between processes; not all lines have one.
 * @returns {{ starts: string[], begins: { id: string, at: bigint, queue: string }[], ends: string[], failed: string[], lost: string[], troubles: string[] }}
 */
export function readDiary(path) {
  const diary = { starts: [], begins: [], ends: [], failed: [], lost: [], troubles: [] }
  if (!existsSync(path)) return diary
  const lines = readFileSync(path, 'utf8').split('\n')
  for (const line of lines) {
    const rest = line.slice(2)
    if (line.startsWith('s ')) begin(diary, rest.split(' '))
    else if (line.startsWith('e ')) diary.ends.push(rest)
    else if (line.startsWith('f ')) diary.failed.push(rest)
    else if (line.startsWith('l ')) diary.lost.push(rest)
    else if (line.startsWith('t ')) diary.troubles.push(rest)
  }
  return diary
}

function begin(diary, [id, at, queue]) {
  diary.starts.push(id)
  if (at !== undefined) diary.begins.push({ id, at: BigInt(at), queue })
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

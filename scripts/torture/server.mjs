import { pause, until } from './child.mjs'
import { readDiary } from './diary.mjs'
import { keepFed, labour, newKills, note } from './kill.mjs'
import { Progress } from './progress.mjs'

/** How long the server runs between two kills, and how long it stays down: sometimes longer than a lease of the crew. */
const LIFE_MS = [300, 2_500]
const AWAY_MS = [0, 2_000]
/** Work must resume within this time after the server is up. */
const RESUME_MS = 30_000

/** kill -9 of the PostgreSQL server, all of its processes, under a crew that keeps working. */
export async function torture(options) {
  const run = (parts) => killServer({ ...parts, options })
  return labour({ kind: 'server', options: { ...options, store: 'postgres' }, config: { outages: true }, run })
}

async function killServer({ options, random, crew, eye, server }) {
  const kills = newKills(options.kills)
  const progress = new Progress('server kill', options.kills)
  await until(() => crew.working.length === options.processes, 60_000)
  const began = performance.now()
  const resumes = []
  while (kills.done < options.kills && performance.now() - began < options.minutes * 60_000) {
    const fed = keepFed(crew, eye)
    await pause(random.between(...LIFE_MS))
    await fed.end()
    await server.kill()
    await pause(random.between(...AWAY_MS))
    const diaries = crew.living.map((life) => readDiary(life.diary))
    await server.restart()
    await note(kills, diaries, eye)
    const resumedInMs = await goesOn(crew)
    if (resumedInMs === undefined) break
    resumes.push(resumedInMs)
    progress.step(
      `in flight ${kills.inFlight}, acknowledged ${crew.acknowledged}, resumed in ${Math.round(resumedInMs)} ms`,
    )
  }
  progress.end()
  kills.tookMs = performance.now() - began
  resumes.sort((a, b) => a - b)
  const told = [...crew.refused].map(([code, times]) => `${code} ${times} times`).join(', ')
  console.log(
    `resumed after ${Math.round(resumes[resumes.length >> 1])} ms (median), ${Math.round(resumes.at(-1))} ms (slowest); callers were told ${told}`,
  )
  return kills
}

/** Returns how long it took until a new enqueue and a new result were acknowledged; undefined when that did not happen in time. */
async function goesOn(crew) {
  const began = performance.now()
  const { acknowledged, results } = crew
  crew.produce(true)
  const isOn = () => crew.acknowledged > acknowledged && crew.results > results
  return (await until(isOn, RESUME_MS)) ? performance.now() - began : undefined
}

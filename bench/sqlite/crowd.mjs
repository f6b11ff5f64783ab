import { createReadStream } from 'node:fs'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout } from 'node:timers/promises'
import { formatCensus, takeCensus } from '../../scripts/torture/census.mjs'
import { OutsideEye } from '../../scripts/torture/outside-eye.mjs'
import { startTask } from '../child.mjs'
import { nowMs } from '../clock.mjs'

/** The remaining jobs must be done within this time after the last enqueue. */
const DRAIN_MS = 120_000
const MIN_MAX_MS = 180_000

/** Several processes on one file, which all enqueue and work; judged by records outside of it. */
export async function scenario(bench) {
  const { options, place, tell } = bench
  const seconds = options.minutes * 60
  const file = place.newFile()
  const diaries = Array.from({ length: options.processes }, (_, i) => join(dirname(file), `diary-${i}.txt`))
  const spec = { task: 'crowd', file, dist: place.dist, rate: options.rate, seconds }
  const members = diaries.map((diary) => startTask({ ...spec, diary }, { maxMs: seconds * 1000 + MIN_MAX_MS }))
  let eye
  try {
    await Promise.all(members.map((member) => member.heard('ready')))
    tell(`crowd ${options.processes} processes at work`)
    await until(members, seconds, tell)
    eye = new OutsideEye(file)
    const drainedMs = await drained(eye)
    for (const member of members) member.end()
    const took = await Promise.all(members.map((member) => member.result))
    return verdictOf({ options, drainedMs, took, seen: await readDiaries(diaries), places: eye.places() })
  } catch (error) {
    for (const member of members) member.kill()
    return broken(options, [`crowd: ${error.message}`])
  } finally {
    eye?.close()
    place.remove(file)
  }
}

const TELL_EVERY_MS = 30_000

async function until(members, seconds, tell) {
  const began = nowMs()
  const timer = setInterval(() => tell(`crowd ${((nowMs() - began) / 1000).toFixed(0)} of ${seconds} s`), TELL_EVERY_MS)
  try {
    await Promise.all(members.map((member) => member.heard('produced')))
  } finally {
    clearInterval(timer)
  }
}

/** Undefined: jobs were left when the time was up. */
async function drained(eye) {
  const began = nowMs()
  while (eye.unfinished() > 0) {
    if (nowMs() - began > DRAIN_MS) return undefined
    await setTimeout(100)
  }
  return nowMs() - began
}

async function readDiaries(diaries) {
  const seen = { acknowledged: new Set(), starts: new Map(), told: [], logged: [], ended: 0 }
  const marks = {
    '+': (id) => seen.acknowledged.add(id),
    '!': (id) => seen.starts.set(id, (seen.starts.get(id) ?? 0) + 1),
    '-': (text) => seen.told.push(text),
    '?': (text) => seen.logged.push(text),
    e: () => (seen.ended += 1),
  }
  for (const diary of diaries)
    for await (const line of createInterface({ input: createReadStream(diary) })) marks[line[0]](line.slice(2))
  return seen
}

function verdictOf({ options, drainedMs, took, seen, places }) {
  const census = takeCensus({ acknowledged: seen.acknowledged, places, starts: seen.starts })
  const twice = [...seen.starts].filter(([, times]) => times > 1).length
  const never = [...seen.acknowledged].filter((id) => !seen.starts.has(id)).length
  const lost = census.of('LOST').length + census.of('IN TWO PLACES').length
  const jobs = seen.acknowledged.size
  const cpuUs = took.reduce((sum, each) => sum + each.cpuUs, 0)
  const rules = [
    ['lost', lost],
    ['acknowledged and never run', never],
    ['run twice without a crash', twice],
    ['errors for callers', seen.told.length],
    ['left undone', drainedMs === undefined ? places.filter(({ history }) => history === null).length : 0],
    ['nothing was measured', jobs === 0 || seen.ended < options.processes ? 1 : 0],
  ]
  const figure = (value) => ({ median: value, min: value, max: value, rounds: 1 })
  return {
    name: 'crowd',
    title: titleOf(options),
    heads: ['', 'enqueued', 'run', 'drained after s', 'CPU µs/job', 'warnings logged'],
    rows: [
      [
        'millrace FULL 20 B',
        jobs.toLocaleString('en-US'),
        seen.starts.size.toLocaleString('en-US'),
        drainedMs === undefined ? '–' : (drainedMs / 1000).toFixed(1),
        (cpuUs / jobs).toFixed(0),
        String(seen.logged.length),
      ],
    ],
    notes: [formatCensus(census), ...examples('told', seen.told), ...examples('logged', seen.logged)],
    gates: rules.slice(0, 4).map(([name, count]) => ({
      name: `crowd: ${name}`,
      measured: figure(count),
      unit: 'jobs',
      most: 0,
    })),
    rounds: {
      broken: rules.filter(([, count]) => count > 0).map(([name, count]) => `crowd: ${name}: ${count}`),
      toJSON: () => ({ ...Object.fromEntries(rules), enqueued: jobs, logged: seen.logged.length, drainedMs, cpuUs }),
    },
  }
}

function examples(word, texts) {
  return [...new Set(texts)].slice(0, 5).map((text) => `  ${word}: ${text}`)
}

function titleOf({ processes, rate, minutes }) {
  return `crowd: ${processes} processes on one file, each enqueues ${rate} a second and works, ${minutes} min, FULL`
}

function broken(options, problems) {
  return {
    name: 'crowd',
    title: titleOf(options),
    heads: [''],
    rows: [],
    gates: [],
    rounds: { broken: problems, toJSON: () => ({}) },
  }
}

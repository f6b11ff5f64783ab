import { startTask } from '../child.mjs'
import { nowMs } from '../clock.mjs'
import { SMALL } from '../payloads.mjs'
import { inRounds } from '../rounds.mjs'
import { beside, CLIENT, measureCase, RATE, SERVER, tableOf, waiting } from './cases.mjs'

const PARTIES = ['millrace', 'graphile-worker tuned']
const PATIENCE_MS = 300_000

/** Several processes on one queue, against one. */
export async function scenario(bench) {
  const { jobs, processes } = bench.options
  const cases = PARTIES.flatMap((party) =>
    [1, processes].map((count) => ({ key: `${party}, ${count} process${count > 1 ? 'es' : ''}`, party, jobs, count })),
  )
  const rounds = await inRounds({ ...bench.plan('processes'), cases }, ({ party, count }) => {
    const run = (spec, options) => share(spec, count, options)
    return measureCase(bench, { task: 'share', party, jobs, template: waiting(bench, party, SMALL, jobs), run })
  })
  const [one, many] = cases.map(({ key }) => key)
  return {
    name: 'processes',
    title: 'processes: no-op jobs already stored, 20 B, from the word to start until the last handler has begun',
    ...tableOf(cases, rounds, [RATE, CLIENT, SERVER, ['of the jobs, the busiest %', (r) => r.busiestPercent]]),
    gates: [
      beside(rounds, `processes: Millrace, ${processes} ÷ one`, [many, one], { least: 0.8 }),
      { name: 'processes: jobs run twice', measured: rounds.summary(many, (r) => r.twice), unit: 'jobs', most: 0 },
    ],
    rounds,
  }
}

/** All are ready before the first begins; all end when together they have begun every job. */
async function share(spec, count, options) {
  const members = Array.from({ length: count }, () => startTask(spec, options))
  try {
    await Promise.all(members.map((member) => member.heard('ready')))
    const began = nowMs()
    for (const member of members) member.tell('go')
    await allBegun(members, spec.jobs)
    for (const member of members) member.end()
    return verdictOf(await Promise.all(members.map((member) => member.result)), spec.jobs, began)
  } catch (error) {
    for (const member of members) member.kill()
    throw error
  }
}

function allBegun(members, jobs) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      reject(new Error(`${begun()} of ${jobs} jobs began in ${PATIENCE_MS / 1000} s`))
    }, PATIENCE_MS)
    const poll = setInterval(() => begun() >= jobs && done(resolve), 20)
    const begun = () => members.reduce((sum, { said }) => sum + (said.ran ?? 0), 0)
    const done = (settle, value) => {
      clearTimeout(timer)
      clearInterval(poll)
      settle(value)
    }
    for (const { result } of members) result.catch((error) => done(reject, error))
  })
}

/** Every job by its number: a job that two processes ran is found here, whatever the store says. */
function verdictOf(results, jobs, began) {
  const times = new Uint8Array(jobs)
  for (const { seen } of results) Buffer.from(seen, 'base64').forEach((count, index) => (times[index] += count))
  const ran = results.reduce((sum, each) => sum + each.ran, 0)
  const twice = times.filter((count) => count > 1).length
  if (twice > 0) throw new Error(`${twice} jobs were run twice`)
  return {
    ran,
    twice,
    ms: Math.max(...results.map(({ lastAt }) => lastAt)) - began,
    cpuUs: results.reduce((sum, { cpuUs }) => sum + cpuUs, 0),
    // Each has measured the whole server.
    serverUs: Math.max(...results.map(({ serverUs }) => serverUs ?? 0)),
    busiestPercent: (Math.max(...results.map((each) => each.ran)) / jobs) * 100,
  }
}

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startTask } from '../child.mjs'
import { emptyTemplate } from '../measure.mjs'
import { SMALL } from '../payloads.mjs'
import { findRedis, RedisPlace } from '../postgres/redis.mjs'
import { inRounds } from '../rounds.mjs'
import { showSummary } from '../table.mjs'

/** A child takes one job at a time, and each is a message there and back: fewer jobs give the same figure. */
const SHARE = 20
const MAX_MS = 600_000

const EXECUTORS = ['loop', 'thread', 'process']

/**
 * What an attempt costs in the event loop, in a thread and in a process, ten at a time; and in BullMQ, whose sandboxed processors
 * are the same idea, where this machine has a redis-server. It is another store with another promise: shown, and compared by no gate.
 */
export async function scenario(bench) {
  const program = findRedis()
  const redis = program === undefined ? undefined : await openRedis(program)
  try {
    return await measured(bench, redis?.place)
  } finally {
    await redis?.close()
  }
}

async function openRedis(program) {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-bench-redis-'))
  const place = await RedisPlace.open(program, folder)
  const close = async () => {
    await place.stop()
    rmSync(folder, { recursive: true, force: true })
  }
  return { place, close }
}

async function measured(bench, redis) {
  const { place, options, nodeArgs } = bench
  const jobs = Math.max(1_000, Math.ceil(options.jobs / SHARE))
  const caseOf = (library, at, template) => (executor) => {
    const key = library === 'millrace' ? executor : `BullMQ, ${executor}`
    return { key, library, executor, at, template }
  }
  const cases = [
    ...EXECUTORS.map(caseOf('millrace', place, await emptyTemplate(place, 'millrace'))),
    ...(redis === undefined ? [] : EXECUTORS.map(caseOf('bullmq', redis, []))),
  ]
  const rounds = await inRounds({ ...bench.plan('executors'), cases }, async ({ library, executor, at, template }) => {
    const copy = await at.copyOf(template)
    try {
      const where = { task: 'executors', library, executor, jobs, bytes: SMALL, concurrency: 10 }
      const { ms, ran } = await startTask({ ...where, ...at.whereOf(copy) }, { nodeArgs, maxMs: MAX_MS }).result
      if (ran !== jobs) throw new Error(`${ran} of ${jobs} jobs ended`)
      return { usPerJob: (ms * 1000) / ran, rate: (ran / ms) * 1000 }
    } finally {
      await at.remove(copy)
    }
  })
  const row = ({ key }) => [
    key,
    showSummary(rounds.summary(key, (r) => r.usPerJob)),
    showSummary(rounds.summary(key, (r) => r.rate)),
  ]
  return {
    name: 'executors',
    title: `executors: ${jobs.toLocaleString('en')} jobs that do nothing, 10 at a time, warm`,
    heads: ['', 'µs/job', 'jobs/s'],
    rows: cases.map(row),
    notes: redis === undefined ? ['no redis-server was found: BullMQ is left out'] : [],
    gates: [],
    rounds,
  }
}

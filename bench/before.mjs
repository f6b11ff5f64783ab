import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { LARGE, SMALL } from './payloads.mjs'
import { inRounds } from './rounds.mjs'
import { showSummary } from './table.mjs'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
/** A change must cost nothing where it is not used; a smaller difference than this is the noise of an idle machine. */
const LEAST = 0.95

/**
 * This tree beside another commit of Millrace, `--before <ref>`, in one run and interleaved. Each build makes its own tables.
 * @param {object} bench
 * @param {(bench: object, spec: object, expected: object) => Promise<object>} measure
 */
export async function before(bench, measure) {
  const { options, place } = bench
  if (options.before === undefined) throw new Error('the scenario `before` needs --before <commit>')
  const old = buildCommit(options.before)
  const builds = { before: { ...bench, place: withDist(place, old.dist) }, now: bench }
  const works = worksOf(options.jobs)
  const cases = works.flatMap((work) =>
    Object.keys(builds).map((build) => ({ ...work, key: `${work.name}, ${build}`, build })),
  )
  const rounds = await inRounds({ ...bench.plan('before'), cases }, ({ build, spec, expected }) =>
    measure(builds[build], spec, expected),
  )
  const quotient = (name, pick) => rounds.ratio(`${name}, now`, `${name}, before`, pick)
  const rate = (result) => result.rate
  return {
    name: 'before',
    title: `before: this tree beside ${old.commit}; CPU is of the client, and of the server where there is one`,
    heads: ['', 'jobs', 'jobs/s before', 'jobs/s now', 'rate now ÷ before', 'client CPU ÷', 'server CPU ÷'],
    rows: works.map(({ name, spec }) => [
      name,
      spec.jobs.toLocaleString('en-US'),
      showSummary(rounds.summary(`${name}, before`, rate)),
      showSummary(rounds.summary(`${name}, now`, rate)),
      showSummary(quotient(name, rate)),
      showSummary(quotient(name, (result) => result.cpuUsPerJob)),
      showSummary(quotient(name, (result) => result.serverUsPerJob)),
    ]),
    gates: works.map(({ name }) => ({
      name: `${name}: rate now ÷ before`,
      measured: quotient(name, rate),
      unit: '×',
      least: LEAST,
    })),
    rounds,
  }
}

/** What each build does. One caller pays a flush for each job, and a key or a unique value costs more, so they get fewer. */
function worksOf(jobs) {
  const few = Math.ceil(jobs / 25)
  const enqueue = (name, count, spec) => ({
    name,
    spec: { task: 'enqueue-one', jobs: count, bytes: SMALL, ...spec },
    expected: { done: 0, left: count },
  })
  const drain = (name, count, bytes) => ({
    name,
    spec: { task: 'drain', jobs: count, bytes },
    expected: { done: count, left: 0 },
  })
  return [
    drain('drain, 20 B', jobs, SMALL),
    drain('drain, 4 KiB', Math.ceil(jobs / 5), LARGE),
    {
      name: 'enqueueMany, 20 B',
      spec: { task: 'enqueue-many', jobs, bytes: SMALL },
      expected: { done: 0, left: jobs },
    },
    enqueue('enqueue, one caller', few, { callers: 1 }),
    enqueue('enqueue, 100 callers', Math.ceil(jobs / 2), { callers: 100 }),
    enqueue('enqueue with a key, one caller', few, { callers: 1, addWith: 'key' }),
    enqueue('enqueue with a key, 100 callers', few, { callers: 100, addWith: 'key' }),
    enqueue('enqueue unique, one caller', few, { callers: 1, addWith: 'unique' }),
    enqueue('enqueue unique, 100 callers', few, { callers: 100, addWith: 'unique' }),
  ]
}

/** The package of another commit, built in .cache and kept there. */
function buildCommit(ref) {
  const git = (...args) => execFileSync('git', args, { cwd: ROOT, encoding: 'utf8' }).trim()
  const commit = git('rev-parse', '--short', `${ref}^{commit}`)
  const home = join(ROOT, '.cache', `before-${commit}`)
  if (!existsSync(home)) {
    mkdirSync(home, { recursive: true })
    const archive = execFileSync('git', ['archive', commit], { cwd: ROOT, maxBuffer: 1 << 30 })
    execFileSync('tar', ['-x', '-C', home], { input: archive })
    symlinkSync(join(ROOT, 'node_modules'), join(home, 'node_modules'))
  }
  execFileSync(process.execPath, ['scripts/build.mjs'], { cwd: home, stdio: 'inherit' })
  return { commit, dist: join(home, 'dist') }
}

/** The same place with another build of the package. It has separate templates, since the tables may differ. */
function withDist(place, dist) {
  return {
    template: (key, steps, how) =>
      place.template(
        `${dist} ${key}`,
        steps.map((step) => ({ ...step, dist })),
        how,
      ),
    copyOf: (template) => place.copyOf(template),
    whereOf: (copy) => ({ ...place.whereOf(copy), dist }),
    remove: (copy) => place.remove(copy),
  }
}

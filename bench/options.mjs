/** The scenarios of each kind, in the order they run. */
export const SCENARIOS = {
  sqlite: [
    'drain',
    'enqueue-many',
    'enqueue-one',
    'latency',
    'memory',
    'neighbours',
    'company',
    'bounded',
    'find',
    'lanes',
    'limits',
    'crowd',
    'executors',
    'workflows',
    'before',
  ],
  postgres: [
    'drain',
    'enqueue-many',
    'enqueue-one',
    'latency',
    'backlog',
    'horizon',
    'processes',
    'company',
    'bounded',
    'stock',
    'find',
    'lanes',
    'limits',
    'workflows',
    'before',
  ],
  crowd: ['crowd'],
  reactive: ['shapes', 'spins', 'backlog', 'memory'],
}

const count = (least, most) => ({ least, most, whole: true })

/** The valid values of an option. */
const RULES = {
  rounds: count(1, 100),
  jobs: count(100, 10_000_000),
  others: count(100, 10_000_000),
  total: count(200_000, 100_000_000),
  concurrency: count(1, 10_000),
  processes: count(2, 64),
  rate: count(1, 10_000),
  minutes: { least: 0.01, most: 1440, whole: false },
  only: 'scenarios',
  json: 'text',
  server: 'text',
  before: 'text',
  quick: 'flag',
  profile: 'flag',
}

/** The options of each kind, with its defaults and those of `--quick`. Every run is bounded. */
export const KINDS = {
  sqlite: {
    about: 'Millrace, plainjob and the bare driver on one SQLite file',
    options: {
      rounds: 5,
      jobs: 100_000,
      others: 1_000_000,
      total: 2_000_000,
      concurrency: 10,
      only: undefined,
      minutes: 0.25,
      processes: 8,
      rate: 100,
      before: undefined,
      json: undefined,
      quick: false,
      profile: false,
    },
    quick: { rounds: 2, jobs: 5_000, others: 20_000, total: 200_000, minutes: 0.05 },
  },
  postgres: {
    about: 'Millrace, graphile-worker, pg-boss, BullMQ and bare loops, on a PostgreSQL server of its own',
    options: {
      rounds: 5,
      jobs: 100_000,
      others: 500_000,
      total: 2_000_000,
      concurrency: 10,
      only: undefined,
      processes: 4,
      server: undefined,
      before: undefined,
      json: undefined,
      quick: false,
      profile: false,
    },
    quick: { rounds: 2, jobs: 5_000, others: 20_000, total: 200_000 },
  },
  crowd: {
    about: 'several processes that all enqueue and work on one file, counted from outside',
    options: { minutes: 1, processes: 8, rate: 100, json: undefined, quick: false },
    quick: { minutes: 0.05 },
  },
  reactive: {
    about: 'millrace/reactive, alien-signals and @preact/signals-core: graph shapes, spins, messages, memory',
    options: { rounds: 5, only: undefined, json: undefined, quick: false, profile: false },
    quick: { rounds: 1 },
  },
}

/**
 * Reads `kind --name value …`. Throws one error with all problems.
 * @param {readonly string[]} args
 */
export function readOptions(args) {
  const [kind, ...rest] = args
  const known = kind !== undefined && Object.hasOwn(KINDS, kind) ? KINDS[kind] : undefined
  if (known === undefined)
    throw new Error(`kind must be one of ${Object.keys(KINDS).join(', ')}, got ${kind ?? 'none'}`)
  const { given, problems } = readGiven(kind, known, rest)
  if (problems.length > 0) throw new Error(problems.join('; '))
  return { kind, options: { ...known.options, ...(given.quick ? known.quick : {}), ...given } }
}

function readGiven(kind, known, rest) {
  const given = {}
  const problems = []
  for (let i = 0; i < rest.length; i += 1) {
    const name = rest[i].replace(/^--/, '')
    if (!rest[i].startsWith('--') || !Object.hasOwn(known.options, name)) {
      problems.push(`${rest[i]} is not an option of ${kind}; it has ${Object.keys(known.options).join(', ')}`)
      // The word after an unknown option is its value, and not a second mistake.
      if (rest[i].startsWith('--') && rest[i + 1]?.startsWith('--') === false) i += 1
      continue
    }
    if (RULES[name] === 'flag') given[name] = true
    else {
      const { value, problem } = readValue(kind, name, rest[i + 1])
      if (problem !== undefined) problems.push(problem)
      given[name] = value
      i += 1
    }
  }
  return { given, problems }
}

function readValue(kind, name, text) {
  const rule = RULES[name]
  if (text === undefined || text.startsWith('--')) return { problem: `--${name} needs a value, got nothing` }
  if (rule === 'text') return { value: text }
  if (rule === 'scenarios') return readScenarios(SCENARIOS[kind], text)
  const value = Number(text)
  const wrong = text.trim() === '' || !(value >= rule.least && value <= rule.most)
  if (wrong || (rule.whole && !Number.isInteger(value)))
    return {
      problem: `--${name} must be a ${rule.whole ? 'whole ' : ''}number from ${rule.least} to ${rule.most}, got ${text}`,
    }
  return { value }
}

function readScenarios(known, text) {
  const names = text.split(',')
  const unknown = names.filter((name) => !known.includes(name))
  if (unknown.length === 0) return { value: names }
  return { problem: `--only must name some of ${known.join(', ')}, with commas between; got ${unknown.join(', ')}` }
}

export function usage() {
  const lines = Object.entries(KINDS).map(([kind, { about, options }]) => {
    const given = Object.entries(options).map(([name, value]) =>
      RULES[name] === 'flag'
        ? `[--${name}]`
        : `[--${name} ${value ?? { json: 'file', server: 'debian', before: 'HEAD~1' }[name] ?? SCENARIOS[kind][0]}]`,
    )
    return `  npm run bench -- ${kind} ${given.join(' ')}\n      ${about}`
  })
  return ['usage:', ...lines].join('\n')
}

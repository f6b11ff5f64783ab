/** The options of each kind, with its defaults: every run is bounded in count and in time. */
export const KINDS = {
  kill: {
    about: 'kill -9 of producers and workers at random moments',
    options: { cycles: 50, processes: 4, rate: 5, store: 'sqlite', url: '', seed: undefined, minutes: 15 },
  },
  server: {
    about: 'kill -9 of the PostgreSQL server and all its processes at random moments',
    options: { kills: 10, processes: 4, seed: undefined, minutes: 15 },
  },
  power: {
    about: 'power cuts: only flushed bytes survive',
    options: { cuts: 10, 'failing-flushes': 0, seed: undefined, minutes: 15 },
  },
  io: {
    about: 'the n-th write or flush of the database fails',
    options: { faults: 20, seed: undefined, minutes: 15 },
  },
  disk: {
    about: 'a disk that is full for a while',
    options: { seconds: 10, seed: undefined, minutes: 5 },
  },
  ticks: {
    about: 'kill -9 of schedulers as ticks are fired, and a start that declares the schedules again',
    options: { cycles: 50, processes: 2, postgres: 0, seed: undefined, minutes: 15 },
  },
  poison: {
    about: 'a job that kills its process, at random positions among others',
    options: { places: 10, jobs: 300, store: 'sqlite', url: '', seed: undefined, minutes: 30 },
  },
  poisons: {
    about: 'eight kinds of handlers that exit, crash, block or leave errors behind, beside good jobs',
    options: { executor: 'both', jobs: 300, quick: 0, seed: 0, minutes: 8 },
  },
  workflows: {
    about: 'kill -9 of processes that run workflows and sequences',
    options: { kills: 50, processes: 3, store: 'sqlite', seed: undefined, minutes: 15 },
  },
  exits: {
    about: 'processes that exit by themselves at random moments, in every way',
    options: { exits: 200, processes: 4, store: 'sqlite', driver: 'default', seed: undefined, minutes: 9 },
  },
}

/** Options that are not numbers, and what each must be. */
const TEXTS = {
  store: (text) => (STORES.includes(text) ? undefined : STORES.join(' or ')),
  executor: (text) => (EXECUTORS.includes(text) ? undefined : EXECUTORS.join(', ')),
  driver: (text) => (DRIVERS.includes(text) ? undefined : DRIVERS.join(', ')),
  url: (text) =>
    /^postgres(ql)?:/.test(text ?? '') && URL.canParse(text) ? undefined : 'the address of a PostgreSQL server',
}
const STORES = ['sqlite', 'postgres']
const EXECUTORS = ['both', 'loop', 'process']
/** The default is what a path opens; the others are handles of the app. */
const DRIVERS = ['default', 'better-sqlite3', 'libsql']

const wholeNumber = (least) => (text) =>
  text !== undefined && Number.isInteger(Number(text)) && Number(text) >= least
    ? undefined
    : `a whole number of ${least} or more`

/**
 * Reads `kind --name value …`. Throws one error with all problems.
 * @param {readonly string[]} args
 */
export function readOptions(args) {
  const [kind, ...rest] = args
  const known = kind === undefined ? undefined : KINDS[kind]
  if (known === undefined)
    throw new Error(`kind must be one of ${Object.keys(KINDS).join(', ')}, got ${kind ?? 'none'}`)
  const options = { ...known.options }
  const problems = []
  for (let i = 0; i < rest.length; i += 2) {
    const name = rest[i].replace(/^--/, '')
    if (!rest[i].startsWith('--') || !(name in known.options))
      problems.push(`${rest[i]} is not an option of ${kind}; it has ${Object.keys(known.options).join(', ')}`)
    else {
      const wrong = (name in TEXTS ? TEXTS[name] : wholeNumber(name === 'seed' ? 0 : 1))(rest[i + 1])
      if (wrong !== undefined) problems.push(`--${name} must be ${wrong}, got ${rest[i + 1] ?? 'nothing'}`)
      else options[name] = name in TEXTS ? rest[i + 1] : Number(rest[i + 1])
    }
  }
  if (options.url && options.store !== 'postgres') problems.push('--url is for --store postgres')
  if (problems.length > 0) throw new Error(problems.join('; '))
  options.seed ??= Math.floor(Math.random() * 1_000_000)
  return { kind, options }
}

export function usage() {
  const lines = Object.entries(KINDS).map(([kind, { about, options }]) => {
    const given = Object.entries(options).map(([name, value]) => `[--${name} ${value === '' ? 'URL' : (value ?? 'N')}]`)
    return `  npm run torture -- ${kind} ${given.join(' ')}\n      ${about}`
  })
  return ['usage:', ...lines].join('\n')
}

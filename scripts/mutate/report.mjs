/** Which room a path is in: the longest of `rooms` that it begins with. */
export function roomOf(path, rooms) {
  return rooms.find((room) => path.startsWith(`src/${room}/`) || path === `src/${room}.ts`)
}

const isKilled = ({ status }) => status === 'killed'

/** The part of the mutants that a test found, in per cent. */
export function scoreOf(results) {
  return results.length === 0 ? 100 : (100 * results.filter(isKilled).length) / results.length
}

/** A survivor for a person: where, what was changed, and how many tests ran without noticing. */
export function survivorLine({ mutant, status, tests }) {
  const { path, line, column, operator, original, mutated } = mutant
  const short = (text) => text.replace(/\s+/g, ' ').slice(0, 100)
  const ran = status === 'unreached' ? 'no test reaches it' : `${tests} tests pass`
  return `${path}:${line}:${column} ${operator}: ${short(original)} → ${short(mutated) || '(removed)'} (${ran})`
}

/** A table by room, with the score of each and of all. */
export function scoreTable(results, rooms) {
  const rows = [
    ...rooms.map((room) => [room, results.filter(({ mutant }) => roomOf(mutant.path, rooms) === room)]),
    ['all', results],
  ]
  return [
    'room             mutants  killed  survived  unreached  score',
    ...rows.map(([name, own]) => {
      const count = (status) => own.filter((each) => each.status === status).length
      const numbers = [own.length, count('killed'), count('survived'), count('unreached')]
      const cells = numbers.map((number, at) => String(number).padStart([8, 8, 10, 11][at]))
      return `${name.padEnd(16)}${cells.join('')}${scoreOf(own).toFixed(1).padStart(7)}`
    }),
  ].join('\n')
}

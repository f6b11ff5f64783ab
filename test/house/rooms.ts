import { importsOf, resolve } from './imports.js'
import { isTest, shipped } from './source.js'
import type { Breach, Rule, Source } from './source.js'

/**
 * The folders of src/ (rooms, see ARCHITECTURE.md), from the bottom up. A room may import those of the floors below it; rooms of
 * one floor may not import each other, except where `NEIGHBOURS` allows it.
 */
const FLOORS: readonly (readonly string[])[] = [
  ['errors', 'world', 'codec', 'reactive'],
  ['job'],
  ['store/observing'],
  ['store'],
  ['workflow'],
  ['store/verbs', 'store/encrypted'],
  ['store/sqlite', 'store/postgres'],
  ['live'],
  ['client', 'worker', 'schedule', 'upkeep', 'observe'],
  ['mill'],
  ['index', 'postgres'],
  ['testing', 'dashboard', 'cli'],
]

/** Which room may import which on the same floor. */
const NEIGHBOURS: Readonly<Record<string, readonly string[]>> = {
  world: ['errors'],
  codec: ['errors'],
  reactive: ['errors', 'codec'],
  cli: ['dashboard', 'testing'],
}

/** The two stores are chosen where a mill is wired, or exported by a door; all other code uses the contract. */
const IMPLEMENTATIONS = ['store/sqlite', 'store/postgres']
const CHOOSERS = ['mill', 'index', 'postgres', 'testing', 'dashboard', 'cli']

/** What the browser side of the dashboard may import: both sides' protocol, and rooms that run in a browser tab. */
const BROWSER_MAY =
  /^src\/(dashboard\/(web\/|protocol\.ts$|protocol\/|search)|reactive\/(?!host\.ts$)|codec\/|errors\.ts$)/

/**
 * Imports point down. Type-only and dynamic imports count like any other: a type of an upper room is a dependency on it.
 * Tests are exempt, since a store's test runs the contract suite.
 */
export const importsPointDown: Rule = (house) =>
  shipped(house).flatMap((source) =>
    importsOf(source).flatMap((found): Breach[] => {
      const target = resolve(source.path, found.specifier)
      const why = target === undefined ? undefined : refusal(source.path, target)
      return why === undefined ? [] : [{ file: source.path, line: found.line, what: `imports ${target}: ${why}` }]
    }),
  )

/** Every file of `src/` is in a room of this map. */
export const everyFileHasARoom: Rule = (house) =>
  house.sources
    .filter((source) => !isTest(source.path) && floorOf(roomOf(source.path)) < 0)
    .map((source) => ({
      file: source.path,
      line: 1,
      what: `is in no room of test/house/rooms.ts (ARCHITECTURE.md has the tree)`,
    }))

/**
 * No run-time import cycle. Erased imports cannot make one, and a dynamic import never sees a half-loaded module;
 * both still have to point down.
 */
export const noImportCycle: Rule = (house) => {
  const files = shipped(house)
  const graph = new Map(files.map((source) => [source.path, loadedBy(source)]))
  const finished = new Set<string>()
  return files.flatMap((source) => {
    const cycle = findCycle(graph, source.path, [], finished)
    return cycle === undefined
      ? []
      : [{ file: source.path, line: 1, what: `is in an import cycle: ${cycle.join(' → ')}` }]
  })
}

/** Nothing in `reactive/` but its host, and nothing the dashboard sends to the browser, imports a `node:` module. */
export const browserRoomsAreFreeOfNode: Rule = (house) =>
  shipped(house)
    .filter(({ path }) => /^src\/(reactive|dashboard\/web)\/|^src\/dashboard\/(protocol|search)/.test(path))
    .filter(({ path }) => path !== 'src/reactive/host.ts')
    .flatMap((source) =>
      importsOf(source)
        .filter(({ specifier, kind }) => kind !== 'type' && specifier.startsWith('node:'))
        .map(({ specifier, line }) => ({
          file: source.path,
          line,
          what: `imports ${specifier}, but must run in a tab too`,
        })),
    )

function refusal(from: string, to: string): string | undefined {
  if (from.startsWith('src/dashboard/web/') && !BROWSER_MAY.test(to))
    return 'the browser side imports only protocol.ts, search.ts, reactive/, codec/ and errors.ts'
  const [a, b] = [roomOf(from), roomOf(to)]
  if (a === b || floorOf(a) < 0 || floorOf(b) < 0) return undefined
  if (floorOf(a) < floorOf(b)) return `${a} is below ${b}, and imports point down`
  if (floorOf(a) === floorOf(b) && !NEIGHBOURS[a]?.includes(b))
    return `${a} and ${b} are on one floor and do not know each other`
  if (IMPLEMENTATIONS.includes(b) && !CHOOSERS.includes(a)) return `${a} speaks to src/store/store.ts, not to one store`
  return undefined
}

function roomOf(path: string): string {
  const parts = path.replace(/^src\//, '').split('/')
  if (parts[0] === 'store' && parts.length > 2 && parts[1] !== 'rows') return `store/${parts[1]}`
  return (parts[0] as string).replace(/\.[a-z]+$/, '')
}

function floorOf(room: string): number {
  return FLOORS.findIndex((rooms) => rooms.includes(room))
}

function loadedBy(source: Source): string[] {
  return importsOf(source)
    .filter(({ kind }) => kind === 'value')
    .flatMap(({ specifier }) => resolve(source.path, specifier) ?? [])
}

/** Depth first; a file is finished once no cycle was found through it, so each cycle is reported once. */
function findCycle(
  graph: ReadonlyMap<string, readonly string[]>,
  file: string,
  trail: readonly string[],
  finished: Set<string>,
): string[] | undefined {
  if (finished.has(file)) return undefined
  if (trail.includes(file)) return [...trail.slice(trail.indexOf(file)), file]
  for (const next of graph.get(file) ?? []) {
    const cycle = findCycle(graph, next, [...trail, file], finished)
    if (cycle !== undefined) {
      for (const member of cycle) finished.add(member)
      return cycle
    }
  }
  finished.add(file)
  return undefined
}

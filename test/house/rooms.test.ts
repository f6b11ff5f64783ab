import { expect, test } from 'vitest'
import { browserRoomsAreFreeOfNode, everyFileHasARoom, importsPointDown, noImportCycle } from './rooms.js'
import { plant } from './source.js'

const refused = (from: string, specifier: string, how = 'import { x } from'): boolean =>
  importsPointDown(plant({ [from]: `${how} '${specifier}'\n` })).length > 0

test.each([
  ['src/job/rules/decide.ts', '../../store/store.js', 'a lower room'],
  ['src/store/store.ts', './sqlite/sqlite-store.js', 'the contract'],
  ['src/store/sqlite/queries/queries.ts', '../../postgres/queries/queries.js', 'one store the other'],
  ['src/worker/claim.ts', '../client.js', 'an actor another actor'],
  ['src/client.ts', './worker/worker.js', 'an actor another actor'],
  ['src/worker/claim.ts', '../store/sqlite/sqlite-store.js', 'an actor one store'],
  ['src/live/live.ts', '../store/sqlite/sqlite-store.js', 'live one store'],
  ['src/live/live.ts', '../mill.js', 'live the mill'],
  ['src/mill.ts', './index.js', 'the mill the front door'],
  ['src/mill.ts', './testing/simulator.js', 'the mill a door'],
  ['src/worker/attempt/run.ts', 'millrace', 'an actor the package by its name'],
  ['src/errors.ts', './codec/codec.js', 'errors the codec'],
  ['src/reactive/graph/signal.ts', '../../world/world.js', 'reactive the world'],
  ['src/codec/codec.ts', '../world/world.js', 'the codec the world'],
  ['src/dashboard/web/view.ts', '../server/server.js', 'the browser side the server side'],
  ['src/dashboard/web/view.ts', '../../reactive/host.js', 'the browser side the host of timers'],
  ['src/testing/simulator.ts', '../cli/main.js', 'one door another that is not its neighbour'],
])('%s may not import %s: %s', (from, specifier) => {
  expect(refused(from, specifier)).toBe(true)
  expect(refused(from, specifier, 'import type { X } from')).toBe(true)
  expect(refused(from, specifier, 'export {\n  x,\n} from')).toBe(true)
})

test('a dynamic import upwards is refused too', () => {
  expect(importsPointDown(plant({ 'src/job/a.ts': `const m = await import('../mill.js')` }))).toHaveLength(1)
})

test.each([
  ['src/mill.ts', './store/sqlite/sqlite-store.js'],
  ['src/index.ts', './store/sqlite/sqlite-store.js'],
  ['src/testing/simulator.ts', '../store/sqlite/sqlite-store.js'],
  ['src/worker/claim.ts', '../store/store.js'],
  ['src/worker/claim.ts', './lease.js'],
  ['src/worker/claim.ts', '../live/live.js'],
  ['src/store/sqlite/sqlite-store.ts', '../store.js'],
  ['src/store/store.ts', '../job/rules/states.js'],
  ['src/job/rules/decide.ts', '../../world/world.js'],
  ['src/codec/codec.ts', '../errors.js'],
  ['src/reactive/spins/spin.ts', '../../codec/codec.js'],
  ['src/cli/main.ts', '../dashboard/server/server.js'],
  ['src/dashboard/web/view.ts', '../protocol.js'],
  ['src/store/sqlite/sqlite-store.test.ts', '../../testing/simulation/simulation.js'],
])('%s may import %s', (from, specifier) => {
  expect(refused(from, specifier)).toBe(false)
})

test('a file in an unknown room is refused', () => {
  expect(
    everyFileHasARoom(plant({ 'src/plumbing/pipe.ts': '', 'src/pipe.ts': '', 'src/job/rules/retry.ts': '' })),
  ).toHaveLength(2)
})

test('a run-time cycle is reported once, with its path', () => {
  const cycle = noImportCycle(
    plant({
      'src/job/a.ts': `import { b } from './b.js'`,
      'src/job/b.ts': `import { type C } from './c.js'`,
      'src/job/c.ts': `export { a } from './a.js'`,
      'src/job/d.ts': `import { a } from './a.js'`,
    }),
  )
  expect(cycle.map(({ what }) => what)).toEqual([
    'is in an import cycle: src/job/a.ts → src/job/b.ts → src/job/c.ts → src/job/a.ts',
  ])
})

test('two cycles through different files are both reported', () => {
  const files = {
    'src/job/a.ts': `import './b.js'`,
    'src/job/b.ts': `import './a.js'`,
    'src/job/c.ts': `import './d.js'`,
    'src/job/d.ts': `import './c.js'`,
  }
  expect(noImportCycle(plant(files))).toHaveLength(2)
})

test('erased and dynamic imports make no run-time cycle', () => {
  const files = {
    'src/job/a.ts': `import { b } from './b.js'`,
    'src/job/b.ts': `import type { A } from './a.js'\nconst a = () => import('./a.js')`,
  }
  expect(noImportCycle(plant(files))).toEqual([])
})

test('rooms that run in a browser tab import no node: module, the host of timers may', () => {
  const text = `import { x } from 'node:async_hooks'`
  const files = {
    'src/reactive/graph/signal.ts': text,
    'src/dashboard/web/app.ts': text,
    'src/dashboard/protocol.ts': text,
  }
  expect(browserRoomsAreFreeOfNode(plant(files))).toHaveLength(3)
  expect(
    browserRoomsAreFreeOfNode(plant({ 'src/reactive/host.ts': text, 'src/dashboard/server/serve.ts': text })),
  ).toEqual([])
})

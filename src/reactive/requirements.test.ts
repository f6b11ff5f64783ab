import { readFileSync, readdirSync } from 'node:fs'
import { expect, test } from 'vitest'

/** The requirements implemented here. Acceptance tests start with these ids. */
const IDS = range(1, 73).map((n) => `R${n}`)

test('every requirement of this part has a test named by its id', () => {
  const here = new URL('.', import.meta.url)
  const files = readdirSync(here, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.test.ts'))
  // Collection needs processes of its own, with --expose-gc.
  const paths = [...files.map((name) => new URL(name, here)), new URL('../../test/reactive.test.ts', here)]
  const sources = paths.map((path) => readFileSync(path, 'utf8'))
  const named = new Set(sources.flatMap((source) => source.match(/(?<=['"])R\d+(?= )/g) ?? []))
  // R25 requires the public suite as well: conformance.test.ts.
  expect(IDS.filter((id) => !named.has(id))).toEqual([])
  expect(IDS.length).toBe(73)
})

function range(from: number, to: number): number[] {
  return Array.from({ length: to - from + 1 }, (_, index) => from + index)
}

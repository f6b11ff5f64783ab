import { expect, test } from 'vitest'
import { examplesOf } from '../../scripts/doc-examples.mjs'

test('an example is a ts fence of a doc comment, without its stars, and with its line', () => {
  const text = [
    '/**',
    ' * Says hello.',
    ' *',
    ' * ```ts',
    " * import { job } from 'millrace'",
    ' *',
    ' *   indented()',
    ' * ```',
    ' */',
    'export const a = 1',
    '  /**',
    '   * ```ts',
    '   * second()',
    '   * ```',
    '   */',
  ].join('\n')
  expect(examplesOf(text)).toEqual([
    { line: 5, code: "import { job } from 'millrace'\n\n  indented()\n" },
    { line: 13, code: 'second()\n' },
  ])
})

test('other fences, plain comments and text are not examples', () => {
  expect(examplesOf('/**\n * ```sql\n * select 1\n * ```\n */')).toEqual([])
  expect(examplesOf('/*\n * ```ts\n * a()\n * ```\n */')).toEqual([])
  expect(examplesOf('// ```ts\n// a()\n// ```')).toEqual([])
})

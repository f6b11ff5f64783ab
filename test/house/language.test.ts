import { expect, test } from 'vitest'
import { languageIsPlain } from './language.js'
import { plant, toSource } from './source.js'

function found(text: string, ceiling?: number): string[] {
  const ceilings = ceiling === undefined ? {} : { 'src/job': ceiling }
  return languageIsPlain(ceilings)(plant({ 'src/job/rules/decide.ts': text })).map(
    ({ line, what }) => `${line} ${what}`,
  )
}

const says = (line: number, word: string): string =>
  `${line} says «${word}»: name the actor, or use the word of the field`

// Words in pieces: this file is read by the rule too.
const NOBODY = ['no', 'body'].join('')
const IS_TOLD = ['is', 'told'].join(' ')

test('banned words are found in comments and names of tests, and not in other code', () => {
  expect(found(`// The worker ${IS_TOLD}.\nconst ${NOBODY} = '${NOBODY}'`)).toEqual([says(1, IS_TOLD)])
  expect(found(`/**\n * For ${NOBODY}.\n */\ntest('${NOBODY} waits', run)`)).toEqual([says(1, NOBODY), says(4, NOBODY)])
  expect(found(`describe.each<[string]>([['${NOBODY}']])('%s of ${NOBODY}', run)`)).toEqual([says(1, NOBODY)])
  expect(found(`test.skipIf(isSlow('${NOBODY}'))(\`\${name} of ${NOBODY}\`, run)`)).toEqual([says(1, NOBODY)])
  expect(found(`rule.test('${NOBODY}')\ntest(named, '${NOBODY}')`)).toEqual([])
})

test('a listed folder may have as many as its ceiling, which shrinks with them', () => {
  const two = `// ${NOBODY}\n// ${NOBODY}`
  expect(found(two, 2)).toEqual([])
  expect(found(two, 1)).toEqual([1, 2].map((line) => `${says(line, NOBODY)} (src/job has 2, and its ceiling is 1)`))
  expect(found(two, 23)).toEqual(['1 has 2 banned words: lower its ceiling of 23'])
  expect(found('', 1)).toEqual(['1 has 0 banned words: lower its ceiling of 1'])
})

test('tests, scripts and benchmarks are read too', () => {
  const others = [toSource('scripts/run.mjs', `// ${NOBODY}`)]
  expect(languageIsPlain({})(plant({}, { others })).map(({ file }) => file)).toEqual(['scripts/run.mjs'])
})

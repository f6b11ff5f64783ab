import { readFileSync, readdirSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const root = fileURLToPath(new URL('.', import.meta.url))
const files = readdirSync(root, { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile() && /\.tsx?$/.test(entry.name) && !entry.name.endsWith('.test.ts'))
  .map((entry) => relative(root, join(entry.parentPath, entry.name)))
const textOf = (file: string): string => readFileSync(join(root, file), 'utf8')

/** The files and packages that a file loads at run time. */
function loadedBy(file: string): string[] {
  const imports = textOf(file).matchAll(/^(?:import|export) (?!type)[^'\n]*(?:\n[^'\n]*)*? from '([^']+)'/gm)
  return [...imports].map(([, specifier = '']) => {
    if (!specifier.startsWith('.')) return specifier
    const path = join(dirname(file), specifier.replace(/\.js$/, ''))
    return files.find((each) => each === `${path}.ts` || each === `${path}.tsx`) ?? path
  })
}

test('what a page shows is computed without Preact, in every file that it loads', () => {
  const computed = files.filter((file) => /views\/.*\/(?:computed|query|timeline)\.ts$/.test(file))
  expect(computed.length).toBeGreaterThan(15)
  const wrong = computed.flatMap((file) => {
    const seen = new Set([file])
    for (const each of seen) if (files.includes(each)) for (const next of loadedBy(each)) seen.add(next)
    return [...seen].filter((each) => /preact/.test(each)).map((each) => `${file} loads ${each}`)
  })
  expect(wrong).toEqual([])
})

test('a template has no dates, no arithmetic library and no calls to the server but through the app', () => {
  const templates = files.filter((file) => /views\/.*\/template\.tsx$/.test(file))
  expect(templates.length).toBeGreaterThan(10)
  const wrong = templates.flatMap(
    (file) => textOf(file).match(/\b(?:new Date|Date\.|Math\.|Intl\.|fetch\(|setTimeout|innerHTML)\S*/g) ?? [],
  )
  expect(wrong).toEqual([])
})

test('no file makes HTML from text', () => {
  const wrong = files.filter((file) =>
    /dangerouslySetInnerHTML|innerHTML|outerHTML|insertAdjacentHTML|document\.write/.test(textOf(file)),
  )
  expect(wrong).toEqual([])
})

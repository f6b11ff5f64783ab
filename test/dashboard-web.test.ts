import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { buildWeb } from '../scripts/build-web.mjs'

/** All scripts and styles, and those that the first page needs: compressed, in bytes. */
const ALL_MAX = 70 * 1_024
const FIRST_MAX = 45 * 1_024

let folder: string

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'millrace-web-'))
  await buildWeb(folder)
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const compressed = (name: string): number => gzipSync(readFileSync(join(folder, name)), { level: 9 }).length
const page = (name: string): string => readFileSync(join(folder, name), 'utf8')

test('all scripts and styles of the dashboard stay within 70 KB, compressed', () => {
  const sizes = readdirSync(join(folder, 'assets'))
    .filter((name) => /\.(js|css)$/.test(name))
    .map((name) => compressed(`assets/${name}`))
  expect(sizes.reduce((total, size) => total + size, 0)).toBeLessThan(ALL_MAX)
})

test('the first page stays within 45 KB, compressed', () => {
  const names = [...page('index.html').matchAll(/"\.\/(assets\/[^"]+\.(?:js|css))"/g)].map(([, name]) => name as string)
  expect(names.length).toBeGreaterThan(1)
  expect(names.map(compressed).reduce((total, size) => total + size, 0)).toBeLessThan(FIRST_MAX)
})

test('the pages have no inline script, style or handler, and nothing from another host', () => {
  for (const name of ['index.html', 'sign-in.html']) {
    expect(page(name)).not.toMatch(/<style|style="|\son\w+="|<script>|(?:src|href)="(?:https?:)?\/\//)
    expect(page(name)).not.toMatch(/(?:src|href)="(?!\.\/)/)
  }
})

test('the manifest names every file, and only the files of the sign-in page are public', () => {
  const manifest = JSON.parse(page('manifest.json')) as Record<string, { type: string; public: boolean }>
  expect(Object.keys(manifest)).toEqual(
    readdirSync(join(folder, 'assets'))
      .map((name) => `assets/${name}`)
      .sort(),
  )
  const open = Object.keys(manifest).filter((name) => manifest[name]?.public)
  expect(open.map((name) => name.replace(/-[\w-]{8}\./, '.')).toSorted()).toEqual(
    ['assets/boot.js', 'assets/sign-in.js', 'assets/sign-in.css', 'assets/stale.svg'].toSorted(),
  )
  expect(open.every((name) => page('sign-in.html').includes(name))).toBe(true)
})

test('no script of the pages makes HTML from text or code from strings', () => {
  for (const name of readdirSync(join(folder, 'assets')).filter(
    (each) => each.endsWith('.js') && !each.startsWith('index'),
  )) {
    expect(page(`assets/${name}`), name).not.toMatch(
      /innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function/,
    )
  }
})

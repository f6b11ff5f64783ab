import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Page } from 'playwright-core'
import { afterEach, beforeAll, expect, test } from 'vitest'
import { build } from '../../scripts/build.mjs'
import { root } from '../../scripts/run.mjs'
import { freshDatabase } from '../postgres/shared-postgres.js'
import { inBrowser, usePages } from './pages.js'
import { violations } from './violations.js'

/** `examples/archive`, as a real process and in a real browser. */
const openPage = usePages()
const ended: (() => Promise<unknown> | void)[] = []

beforeAll(async () => {
  const built = await build()
  if (built.code !== 0) throw new Error(`the package does not build:\n${built.output}`)
})
afterEach(async () => {
  for (const end of ended.splice(0).toReversed()) await end()
})

inBrowser('the page that archives contacts', () => {
  test('shows a bar that moves while it runs, to the end', async () => {
    const { page } = await openPage()
    await page.goto(await serve(['--contacts', '30', '--item-ms', '20']))
    await shows(page, 'Not started.', ['run', 'cancel', 'reset'])
    await page.getByRole('button', { name: 'Run' }).click()
    const seen = new Set<number>()
    await expect
      .poll(async () => {
        seen.add(Number(await page.getByRole('progressbar').getAttribute('value')))
        return page.getByRole('status').textContent()
      })
      .toBe('All contacts are archived.')
    expect(seen.size).toBeGreaterThan(2)
    expect(await page.locator('#count').textContent()).toBe('30 of 30')
    await shows(page, 'All contacts are archived.', ['reset'])
  })

  test.each(['sqlite', 'postgres'])(
    'pauses, resumes, stops at an error, is cancelled and reset, on %s',
    async (kind) => {
      const { page } = await openPage()
      const store = kind === 'sqlite' ? freshFolder('jobs.db') : await database()
      await page.goto(await serve(['--contacts', '400', '--item-ms', '30', '--fails-at', '8', '--store', store]))
      await press(page, 'Run')
      await shows(page, 'Stopped by an error. Resume tries that contact again.', ['resume', 'reset'])
      expect(await page.locator('#error').textContent()).toBe('Contact 8: the mailbox of Radia 1 is full')
      expect(await page.locator('#count').textContent()).toBe('7 of 400')
      await press(page, 'Resume')
      await shows(page, 'Archiving …', ['pause', 'cancel', 'reset'])
      await press(page, 'Pause')
      await shows(page, 'Paused.', ['resume', 'cancel', 'reset'])
      const paused = await page.locator('#count').textContent()
      await press(page, 'Resume')
      await expect.poll(() => page.locator('#count').textContent()).not.toBe(paused)
      await press(page, 'Cancel')
      await shows(page, 'Cancelled. Reset begins again.', ['reset'])
      await press(page, 'Reset')
      await shows(page, 'Not started.', ['run', 'cancel', 'reset'])
      expect(await page.locator('#count').textContent()).toBe('0 of 400')
    },
  )

  test('goes on where it was when its server is killed and started again, in every open page', async () => {
    const [{ page }, other] = [await openPage(), await openPage()]
    const args = ['--contacts', '400', '--item-ms', '25', '--store', freshFolder('jobs.db')]
    const link = await serve(args)
    await page.goto(link)
    await other.page.goto(link)
    await press(page, 'Run')
    await expect.poll(() => done(other.page)).toBeGreaterThan(10)
    await kill()
    await shows(page, 'No connection. Trying again …', [])
    const before = await done(page)
    await serve([...args, '--port', new URL(link).port])
    await expect.poll(() => done(other.page), { timeout: 30_000 }).toBeGreaterThan(before)
    await shows(page, 'Archiving …', ['pause', 'cancel', 'reset'])
  })

  test('is usable by keyboard, has no violation that axe finds, and fits a phone', async () => {
    for (const colorScheme of ['light', 'dark'] as const) {
      const { page } = await openPage({ colorScheme, viewport: { width: 390, height: 800 } })
      await page.goto(await serve(['--contacts', '400', '--item-ms', '25']))
      await shows(page, 'Not started.', ['run', 'cancel', 'reset'])
      expect(await violations(page)).toEqual([])
      expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(390)
      await page.keyboard.press('Tab')
      await page.keyboard.press('Enter')
      await shows(page, 'Archiving …', ['pause', 'cancel', 'reset'])
    }
  })

  test('refuses commands of other sites, and names that are not its own', async () => {
    const link = await serve(['--contacts', '5'])
    expect((await fetch(`${link}run`, { method: 'POST' })).status).toBe(403)
    expect((await fetch(`${link}run`, { method: 'POST', headers: { 'sec-fetch-site': 'cross-site' } })).status).toBe(
      403,
    )
    expect((await fetch(`${link}../jobs`)).status).toBe(404)
    expect((await fetch(`${link}constructor`, { method: 'POST' })).status).toBe(404)
    const { page } = await openPage()
    await page.goto(link)
    await shows(page, 'Not started.', ['run', 'cancel', 'reset'])
  })
})

async function press(page: Page, name: string): Promise<void> {
  await page.getByRole('button', { name, exact: true }).click()
}

/** The page says this, and exactly these buttons can be pressed. */
async function shows(page: Page, state: string, enabled: readonly string[]): Promise<void> {
  await expect
    .poll(async () => [
      await page.getByRole('status').textContent(),
      await page.locator('button:enabled').evaluateAll((buttons) => buttons.map((each) => each.getAttribute('name'))),
    ])
    .toEqual([state, enabled])
}

async function done(page: Page): Promise<number> {
  return Number.parseInt((await page.locator('#count').textContent()) ?? '', 10)
}

function freshFolder(file: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-archive-'))
  ended.push(() => rmSync(folder, { recursive: true, force: true }))
  return join(folder, file)
}

async function database(): Promise<string> {
  const { url, drop } = await freshDatabase()
  ended.push(drop)
  return url
}

let server: ChildProcess | undefined

/** Starts the example, and resolves with the link that it prints. */
async function serve(args: readonly string[]): Promise<string> {
  const path = join(root, 'examples', 'archive', 'server.js')
  const child = spawn(process.execPath, [path, '--port', '0', ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
  server = child
  let errors = ''
  child.stderr.on('data', (data: Buffer) => (errors += data.toString()))
  const gone = new Promise<string | number | null>((resolve) =>
    child.once('exit', (code, signal) => resolve(code ?? signal)),
  )
  ended.push(async () => {
    const isKilled = child.signalCode !== null
    child.kill('SIGTERM')
    expect([await gone, isKilled], errors).toEqual(isKilled ? ['SIGKILL', true] : [0, false])
  })
  for await (const line of createInterface({ input: child.stdout })) if (line.startsWith('http')) return line
  throw new Error(`examples/archive ended before it listened: ${errors}`)
}

async function kill(): Promise<void> {
  const gone = new Promise((resolve) => server?.once('exit', resolve))
  server?.kill('SIGKILL')
  await gone
}

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { BrowserContextOptions, Page } from 'playwright-core'
import { afterAll, beforeAll, inject } from 'vitest'
import { build } from '../../scripts/build.mjs'
import type * as sources from '../../src/index.js'
import type { DashboardListenOptions, ServedDashboard } from '../../src/dashboard/index.js'
import type { Mill, MillOptions } from '../../src/index.js'
import { freshDatabase } from '../postgres/shared-postgres.js'
import type { OpenPage } from './pages.js'

/** The built package: only that has the pages. */
export type Built = typeof sources

/** A mill of the built package, its dashboard, and signed-in pages of it. */
export interface Shop {
  readonly built: Built
  readonly mill: Mill
  readonly store: string
  readonly dashboard: ServedDashboard
  /** A signed-in page at a route such as `jobs?q=state:failed`. */
  readonly visit: (route: string, options?: BrowserContextOptions) => Promise<Page>
  /** A second dashboard on the same mill; it is closed with the file. */
  readonly serve: (options: DashboardListenOptions) => Promise<ServedDashboard>
}

export const STORES = ['sqlite', 'postgres'] as const

/** Made once for a file, since a sign-in is allowed a few times a minute. */
export function useShop(
  kind: (typeof STORES)[number],
  openPage: (options?: BrowserContextOptions) => Promise<OpenPage>,
  options: (built: Built) => MillOptions | Promise<MillOptions>,
): () => Shop {
  let shop: Shop | undefined
  const ends: (() => unknown)[] = []
  beforeAll(async () => {
    if (!('endpoint' in inject('browser'))) return
    const made = await build()
    if (made.code !== 0) throw new Error(`the package does not build:\n${made.output}`)
    const built = (await import(new URL('../../dist/index.js', import.meta.url).href)) as Built
    const store = kind === 'sqlite' ? join(folder(), 'jobs.db') : await database()
    const mill = await built.millrace({ store, logger: false, ...(await options(built)) })
    ends.push(() => mill.close({ deadline: 0 }))
    const serve = async (given: DashboardListenOptions): Promise<ServedDashboard> => {
      const served = await mill.dashboard({ port: 0, ...given })
      ends.push(() => served.close())
      return served
    }
    const dashboard = await serve({ title: 'shop' })
    shop = { built, mill, store, dashboard, serve, visit: visitor(openPage, dashboard.url) }
  })
  afterAll(async () => {
    for (const end of ends.splice(0).toReversed()) await end()
  })
  const folder = (): string => {
    const made = mkdtempSync(join(tmpdir(), 'millrace-browser-'))
    ends.push(() => rmSync(made, { recursive: true, force: true }))
    return made
  }
  const database = async (): Promise<string> => {
    const { url, drop } = await freshDatabase()
    ends.push(drop)
    return url
  }
  return () => {
    if (shop === undefined) throw new Error('the shop is made by beforeAll')
    return shop
  }
}

type Visit = Shop['visit']

/** The first visit signs in by the link; later ones bring its cookie. */
export function visitor(openPage: (options?: BrowserContextOptions) => Promise<OpenPage>, link: string): Visit {
  const root = link.replace(/#.*/, '')
  let state: BrowserContextOptions['storageState']
  return async (route, options) => {
    const { page, faults } = await openPage({
      reducedMotion: 'reduce',
      ...options,
      ...(state && { storageState: state }),
    })
    if (state === undefined) {
      await page.goto(link)
      await page.locator('#main h1').waitFor()
      state = await page.context().storageState()
      // The first request of a stranger is answered with 401 and the sign-in page, and the browser notes that.
      faults.splice(0, faults.length, ...faults.filter((each) => !each.includes('401')))
    }
    await page.goto(`${root}#/${route}`)
    await settled(page)
    return page
  }
}

/** The page has its data. */
export async function settled(page: Page): Promise<void> {
  await page.locator('#main h1').waitFor()
  await page.locator('#main .skeleton').waitFor({ state: 'detached' })
}

/** The text of the page as a person reads it. */
export function textOf(page: Page): Promise<string> {
  return page.locator('#main').innerText()
}

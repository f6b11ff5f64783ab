import { chromium } from 'playwright-core'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, inject } from 'vitest'

const found = inject('browser')
export const hasBrowser = 'endpoint' in found

/** `describe`, whose tests are skipped by name where no browser was found. */
export const inBrowser = describe.skipIf(!hasBrowser)

export interface OpenPage {
  readonly page: Page
  /** What the page threw or wrote as an error to its console, violations of its content security policy included. */
  readonly faults: string[]
}

/** The browser's note of a connection that ended: tests stop servers under open pages. */
const LOST = /net::ERR_(CONNECTION|INCOMPLETE_CHUNKED|EMPTY_RESPONSE|SOCKET)/

/** Long enough for a machine that does other work too: only a test that fails waits for it. */
const ACTION_MAX_MS = 15_000

const forgiven = new WeakMap<Page, RegExp[]>()

/** What this test makes the page complain of is no fault: a refused request is noted by the browser. */
export function expectFault(page: Page, fault: RegExp): void {
  forgiven.set(page, [...(forgiven.get(page) ?? []), fault])
}

/** Pages of the one browser of this run: each has a profile of its own, and is closed after its test, which fails if the page had faults. */
export function usePages(): (options?: BrowserContextOptions) => Promise<OpenPage> {
  let browser: Browser | undefined
  let open: (OpenPage & { readonly close: () => Promise<void> })[] = []
  beforeAll(async () => {
    if ('endpoint' in found) browser = await chromium.connect(found.endpoint)
  })
  afterEach(async () => {
    const ended = open
    open = []
    await Promise.all(ended.map(({ close }) => close()))
    const isExpected = (page: Page, fault: string): boolean =>
      (forgiven.get(page) ?? []).some((each) => each.test(fault))
    expect(ended.flatMap(({ page, faults }) => faults.filter((fault) => !isExpected(page, fault)))).toEqual([])
  })
  afterAll(() => browser?.close())
  return async (options) => {
    if (browser === undefined) throw new Error('no browser was found: give the test to inBrowser')
    const context = await browser.newContext(options)
    context.setDefaultTimeout(ACTION_MAX_MS)
    const page = await context.newPage()
    const faults: string[] = []
    page.on('pageerror', (error) => faults.push(String(error)))
    page.on('console', (message) => {
      if (message.type() === 'error' && !LOST.test(message.text()))
        faults.push(`${message.text()} (${message.location().url})`)
    })
    open.push({ page, faults, close: () => context.close() })
    return { page, faults }
  }
}

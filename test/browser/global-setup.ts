import { chromium } from 'playwright-core'
import type { TestProject } from 'vitest/node'
import { CHROMIUM_FLAGS, findChromium } from '../../scripts/find-chromium.mjs'

declare module 'vitest' {
  interface ProvidedContext {
    /** Where the browser of this run listens, or why there is none. */
    browser: { readonly endpoint: string } | { readonly reason: string }
  }
}

/** One browser for the whole run, with a new profile; each test gets a page of its own from it. */
export async function setup({ provide }: TestProject): Promise<() => Promise<void>> {
  const found = await findChromium()
  if ('reason' in found) {
    console.warn(`The browser tests are skipped: ${found.reason}. Set MILLRACE_CHROMIUM to the path of a Chromium.`)
    provide('browser', found)
    return async () => {}
  }
  const server = await chromium.launchServer({
    executablePath: found.path,
    env: { ...process.env, ...found.env } as Record<string, string>,
    args: CHROMIUM_FLAGS,
    headless: true,
    chromiumSandbox: process.getuid?.() !== 0,
  })
  provide('browser', { endpoint: server.wsEndpoint() })
  return () => server.close()
}

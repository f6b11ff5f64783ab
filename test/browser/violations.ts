import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Page } from 'playwright-core'

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

const RUN = `axe.run().then(({ violations }) =>
  violations.map(({ id, help, nodes }) => ({ id, help, nodes: nodes.map(({ html }) => html) })))`

interface Found {
  readonly id: string
  readonly help: string
  readonly nodes: readonly string[]
}

/** What axe-core finds wrong with the page as it is now: each with its rule and the elements. Violations of every rank count. */
export async function violations(page: Page): Promise<string[]> {
  // Over the protocol, not as a script element: the content security policy of the page stays as it is.
  if (!(await page.evaluate<boolean>(`'axe' in window`))) await page.evaluate(AXE)
  const found = await page.evaluate<Found[]>(RUN)
  return found.map(({ id, help, nodes }) => `${id}: ${help}: ${nodes.slice(0, SHOWN_MAX).join(' ')}`)
}

const SHOWN_MAX = 3

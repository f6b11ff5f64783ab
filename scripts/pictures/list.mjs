/**
 * The pictures, by their numbers in the list of the dashboard's design. `at` is the route; `act` brings the page into the state of the
 * picture. A picture without a shop is of `trouble`.
 */
const LOST_MS = 16_000

export const PICTURES = [
  { number: 1, name: 'overview-healthy', shop: 'healthy', at: () => '' },
  { number: 2, name: 'overview-trouble', at: () => '' },
  { number: 3, name: 'overview-empty', shop: 'empty', at: () => '' },
  { number: 4, name: 'jobs', at: () => 'jobs' },
  { number: 5, name: 'jobs-completion', at: () => `jobs?q=${encodeURIComponent('queue:billing')}`, act: complete },
  { number: 6, name: 'jobs-search-error', at: () => `jobs?q=${encodeURIComponent('stat:failed')}` },
  { number: 7, name: 'jobs-scan-stopped', at: () => `jobs?q=${encodeURIComponent('payload.order:>99999')}` },
  { number: 8, name: 'job-done', at: ({ done }) => `job/${done}` },
  { number: 9, name: 'job-retrying', at: ({ retrying }) => `job/${retrying}` },
  { number: 10, name: 'job-running', at: ({ running }) => `job/${running}` },
  { number: 11, name: 'job-parked', at: ({ parked }) => `job/${parked}` },
  { number: 12, name: 'job-graph', at: ({ graph }) => `job/${graph}` },
  { number: 13, name: 'workflow', at: ({ refund }) => `job/${refund}` },
  { number: 14, name: 'queues', at: () => 'queues' },
  { number: 15, name: 'queue', at: () => 'queues/billing' },
  { number: 16, name: 'recurring', at: () => 'recurring/sync-stock' },
  { number: 17, name: 'groups', at: () => 'groups' },
  { number: 18, name: 'sequence-stopped', at: ({ migrate }) => `sequences/${migrate}` },
  { number: 19, name: 'workers', at: () => 'workers' },
  { number: 20, name: 'failures', at: () => 'failures' },
  { number: 21, name: 'failure', at: ({ print }) => `failures/${print}` },
  { number: 22, name: 'upcoming', at: () => 'upcoming' },
  { number: 23, name: 'health', at: () => 'health' },
  { number: 24, name: 'audit', at: () => 'audit' },
  { number: 25, name: 'bulk-preview', at: () => 'failures', act: previewBulk },
  { number: 26, name: 'delete-dialog', at: ({ parked }) => `job/${parked}`, act: askDelete },
  { number: 27, name: 'enqueue-error', at: () => 'enqueue?job=old-order', act: enqueueWrong },
  { number: 28, name: 'keys', at: () => '', act: (page) => page.keyboard.press('?') },
  { number: 29, name: 'no-connection', at: () => 'queues', act: loseConnection },
  { number: 30, name: 'sign-in', isSignedOut: true, at: () => '' },
  { number: 31, name: 'job-viewer', isViewer: true, at: ({ retrying }) => `job/${retrying}` },
  { number: 32, name: 'store-unreachable', shop: 'gone', at: () => 'queues', act: loseStore },
  { number: 33, name: 'job-hostile', at: ({ hostile }) => `job/${hostile}` },
]

async function complete(page) {
  const box = page.locator('[data-search]')
  await box.click()
  await box.press('End')
  await box.pressSequentially(' sta')
  await page.getByRole('option').first().waitFor()
}

async function previewBulk(page) {
  await page
    .getByRole('button', { name: /^Retry/ })
    .first()
    .click()
  await page.getByRole('dialog').waitFor()
}

async function askDelete(page) {
  const button = page.getByRole('button', { name: 'Delete', exact: true })
  if (!(await button.isVisible())) await page.getByRole('button', { name: /^More/ }).first().click()
  await page
    .getByRole('button', { name: 'Delete', exact: true })
    .or(page.getByRole('menuitem', { name: 'Delete' }))
    .first()
    .click()
  await page.getByRole('dialog').waitFor()
}

async function enqueueWrong(page) {
  await page.locator('main textarea').first().fill('{ "lines": ')
  await page
    .getByRole('button', { name: /^Enqueue/ })
    .last()
    .click()
}

async function loseConnection(page) {
  await page.context().setOffline(true)
  await page.waitForTimeout(LOST_MS)
}

async function loseStore(page, shop) {
  shop.lose()
  await page.locator('[role=status], [role=alert]').filter({ hasText: /store/i }).first().waitFor()
}

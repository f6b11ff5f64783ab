import { execFileSync } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { chromium } from 'playwright-core'
import { build } from './build.mjs'
import { CHROMIUM_FLAGS, findChromium } from './find-chromium.mjs'
import { tell } from './run.mjs'

/**
 * `npm run pictures -- --out folder [--only 2,4] [--width 1440] [--theme dark] [--jobs 20000]`: the dashboard in 32 states, each at
 * three widths in both themes, of the demo that stands still. `--seen` names what the picture is for: `text` is 200 % text, `forced` forced
 * colours, `protanopia`, `deuteranopia`, `tritanopia` and `achromatopsia` what a colour-blind person sees.
 */
const WIDTHS = [1440, 1024, 390]
const HEIGHTS = { 1440: 900, 1024: 768, 390: 844 }
const THEMES = ['light', 'dark']
const SETTLED_MS = 700
const PAGE_MAX_MS = 20_000

const { values: given } = parseArgs({
  options: {
    out: { type: 'string', default: '.cache/pictures' },
    only: { type: 'string' },
    width: { type: 'string' },
    theme: { type: 'string' },
    seen: { type: 'string' },
    jobs: { type: 'string', default: '20000' },
  },
})
const out = resolve(given.out)
const widths = given.width === undefined ? WIDTHS : given.width.split(',').map(Number)
const themes = given.theme === undefined ? THEMES : given.theme.split(',')

tell(await build())
const [{ makeShops }, { PICTURES }, found] = await Promise.all([
  import('./pictures/shops.mjs'),
  import('./pictures/list.mjs'),
  findChromium(),
])
if ('reason' in found) throw new Error(`no pictures without a browser: ${found.reason}`)
const only = given.only?.split(',').map(Number)
const wanted = PICTURES.filter(({ number }) => only === undefined || only.includes(number))

mkdirSync(out, { recursive: true })
console.log(`fonts: ${fonts()}`)
const browser = await chromium.launch({
  executablePath: found.path,
  env: { ...process.env, ...found.env },
  args: CHROMIUM_FLAGS,
})
const shops = makeShops({ jobs: Number(given.jobs) })
let failed = 0
try {
  for (const picture of wanted)
    for (const width of widths) for (const theme of themes) failed += await taken(picture, width, theme)
} finally {
  await browser.close()
  await shops.close()
}
console.log(failed === 0 ? `all pictures are in ${out}` : `${failed} pictures could not be taken`)
process.exit(failed === 0 ? 0 : 1)

/** The number of pictures that could not be taken: 0 or 1. The shop that loses its store is made for each. */
async function taken(picture, width, theme) {
  const { number, name, act, at } = picture
  const file = join(
    out,
    `${String(number).padStart(2, '0')}-${name}-${width}-${theme}${given.seen ? `-${given.seen}` : ''}.png`,
  )
  const shop = await shops.of(picture.shop ?? 'trouble')
  if (shop.signedIn === undefined) await signIn(shop)
  const context = await browser.newContext({
    viewport: { width, height: HEIGHTS[width] ?? 900 },
    colorScheme: theme,
    reducedMotion: 'reduce',
    timezoneId: 'Europe/Oslo',
    locale: 'en-GB',
    ...(picture.isSignedOut !== true && { storageState: shop.signedIn }),
    ...(width < 640 && { hasTouch: true, isMobile: true }),
    ...(given.seen === 'forced' && { forcedColors: 'active' }),
  })
  context.setDefaultTimeout(PAGE_MAX_MS)
  const page = await context.newPage()
  try {
    await seenAs(page)
    await open(page, picture, shop, at(shop.ids))
    await act?.(page, shop)
    await page.waitForTimeout(SETTLED_MS)
    await page.screenshot({ path: file, fullPage: act === undefined && picture.isSignedOut !== true })
    const wide = await page.evaluate('document.documentElement.scrollWidth')
    console.log(`${file}${wide > width ? `  is ${wide} px wide` : ''}`)
    return 0
  } catch (error) {
    await page.screenshot({ path: file }).catch(() => {}) // what there was, to look at
    console.log(`${file}  ${error.message.split('\n')[0]}`)
    return 1
  } finally {
    await context.close()
  }
}

async function open(page, { isSignedOut, isViewer }, shop, route) {
  await page.goto(`${(isViewer ? shop.viewerLink : shop.link).replace(/#.*/, '')}#/${route}`)
  if (isSignedOut) return page.locator('form').waitFor()
  await page.locator('#main h1').waitFor()
  await page.locator('#main .skeleton').waitFor({ state: 'detached' })
}

/** Once for each shop: more sign-ins than a few a minute are refused. */
async function signIn(shop) {
  const context = await browser.newContext()
  const page = await context.newPage()
  await page.goto(shop.link)
  await page.locator('#main h1').waitFor()
  shop.signedIn = await context.storageState()
  await context.close()
}

async function seenAs(page) {
  if (given.seen === 'text')
    await page.addInitScript(
      `addEventListener('DOMContentLoaded', () => { document.documentElement.style.fontSize = '200%' })`,
    )
  if (!/opia|opsia/.test(given.seen ?? '')) return
  const session = await page.context().newCDPSession(page)
  await session.send('Emulation.setEmulatedVisionDeficiency', { type: given.seen })
}

/** Which faces the pictures are drawn with: the same machine takes the same pictures. */
function fonts() {
  try {
    return ['system-ui', 'sans-serif', 'monospace']
      .map((family) => execFileSync('fc-match', [family], { encoding: 'utf8' }).trim())
      .join(', ')
  } catch {
    return 'those of the system' // no fontconfig here
  }
}

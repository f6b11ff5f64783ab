import {
  accessSync,
  constants,
  createReadStream,
  createWriteStream,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { delimiter, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { createBrotliDecompress } from 'node:zlib'
import { root, run } from './run.mjs'

/**
 * Which Chromium runs the browser tests and takes the pictures: that of $MILLRACE_CHROMIUM, else one that is installed, else the one in
 * the dev dependency @sparticuz/chromium (x64 Linux only), which is unpacked once into .cache/.
 * @returns {Promise<{ path: string, env: Record<string, string> } | { reason: string }>}
 */
export async function findChromium() {
  const chosen = process.env.MILLRACE_CHROMIUM
  if (chosen === 'none') return { reason: 'MILLRACE_CHROMIUM is none' }
  if (chosen !== undefined && chosen !== '')
    return tried([{ path: chosen, env: {} }], 'the program that MILLRACE_CHROMIUM names')
  const installed = INSTALLED.flatMap((name) => placesOf(name)).filter(isExecutable)
  const found = await tried(
    installed.map((path) => ({ path, env: {} })),
    'an installed Chromium',
  )
  return 'path' in found ? found : tried(await unpacked(), 'the Chromium of @sparticuz/chromium')
}

/** By itself Chromium uses QUIC, fetches components and syncs; as root it refuses to start with a sandbox. */
export const CHROMIUM_FLAGS = [
  ...(process.getuid?.() === 0 ? ['--no-sandbox'] : []),
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--hide-scrollbars',
]

const INSTALLED = [
  'chromium',
  'chromium-browser',
  'google-chrome-stable',
  'google-chrome',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
  'C:\\Program Files\\Google\\Chrome\\Application\\chrome.exe',
]
const VERSION_MAX_MS = 20_000

function placesOf(name) {
  if (name.includes('/') || name.includes('\\')) return [name]
  const folders = ['/usr/bin', ...(process.env.PATH ?? '').split(delimiter)]
  return [...new Set(folders.map((folder) => join(folder, name)))]
}

function isExecutable(path) {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false // not there: the next place is tried
  }
}

/** The first one that tells its version: a program that is there can still lack its libraries. */
async function tried(programs, what) {
  let reason = `${what} was not found`
  for (const { path, env } of programs) {
    // A Windows program opens a window when it is asked for its version.
    if (process.platform === 'win32') return { path, env }
    const { code, output } = await run(path, ['--version'], { env, timeoutMs: VERSION_MAX_MS })
    if (code === 0) return { path, env }
    reason = `${what} does not start: ${output.trim().split('\n').at(-1)}`
  }
  return { reason }
}

/** Two forms of the same program: with the libraries of this machine, and with those that the package brings. */
async function unpacked() {
  const folder = join(root, 'node_modules', '@sparticuz', 'chromium')
  if (!existsSync(folder) || process.platform !== 'linux' || process.arch !== 'x64') return []
  const { version } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  const target = join(root, '.cache', `chromium-${version}`)
  if (!existsSync(target)) await unpack(join(folder, 'bin'), target)
  const path = join(target, 'chromium')
  const env = { FONTCONFIG_PATH: join(target, 'fonts') }
  return [
    { path, env },
    { path, env: { ...env, LD_LIBRARY_PATH: join(target, 'al2023', 'lib') } },
  ]
}

/** Into a folder beside it that is renamed when all of it is there: several processes may do so at once. */
async function unpack(from, target) {
  const making = `${target}.${process.pid}`
  mkdirSync(making, { recursive: true })
  const inflate = (name, to, mode) =>
    pipeline(
      createReadStream(join(from, name)),
      createBrotliDecompress(),
      createWriteStream(join(making, to), { mode }),
    )
  await inflate('chromium.br', 'chromium', 0o755)
  for (const [name, folder] of [
    ['fonts', 'fonts'],
    ['al2023', 'al2023'],
  ]) {
    await inflate(`${name}.tar.br`, `${name}.tar`)
    mkdirSync(join(making, folder), { recursive: true })
    const { code, output } = await run('tar', ['-xf', join(making, `${name}.tar`), '-C', join(making, folder)])
    if (code !== 0) throw new Error(`${name}.tar of @sparticuz/chromium could not be unpacked: ${output}`)
    rmSync(join(making, `${name}.tar`))
  }
  writeFileSync(join(making, 'fonts', 'fonts.conf'), fontsOf(join(target, 'fonts')))
  try {
    renameSync(making, target)
  } catch (error) {
    rmSync(making, { recursive: true })
    if (!existsSync(target)) throw error
  }
}

/** The fonts of this machine, and those of the package, whose own file names the folders of another system. */
function fontsOf(folder) {
  const folders = ['/usr/share/fonts', join(folder, 'fonts')].map((each) => `<dir>${each}</dir>`).join('')
  const cache = `<cachedir>${join(folder, 'cache')}</cachedir>`
  return `<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd"><fontconfig>${folders}${cache}</fontconfig>\n`
}

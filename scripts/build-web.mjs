import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { build } from 'vite'
import { root } from './run.mjs'

export const WEB = join(root, 'src', 'dashboard', 'web')
/** The browsers of the last two years: what they can do is not translated for older ones. */
const TARGET = ['chrome128', 'firefox130', 'safari18']

/** All pages but the first, and the parts that only they have. */
const DETAILS = new RegExp(
  [
    String.raw`/web/views/(job|jobs|queue|workers|groups|recurring|upcoming|health|audit|enqueue)/(?!query\.)`,
    '/web/views/(queues|failures)/template',
    '/web/frame/(overlays|jump)',
    '/web/parts/(timeline|folded-scale|graph|json-tree|copy|act/job-act)',
  ].join('|'),
)

/** Two scripts: few files, since each is a request and is compressed by itself. */
const CHUNKS = [
  { name: 'base', priority: 2, test: (id) => !DETAILS.test(id) && !/sign-in/.test(id) },
  { name: 'details', priority: 1, test: DETAILS },
]

/**
 * Builds the pages of the dashboard into `folder`: `index.html`, `sign-in.html`, `assets/` with hashed names, and
 * `manifest.json`, which names every file with its type. URLs in the pages begin with `./`: the server puts the mount there.
 */
export async function buildWeb(folder) {
  await build({
    configFile: false,
    mode: 'production',
    // The same files whatever NODE_ENV is: a test builds them too.
    define: { 'process.env.NODE_ENV': '"production"' },
    root: WEB,
    base: './',
    logLevel: 'error',
    publicDir: false,
    plugins: [bootScript()],
    oxc: { jsx: { runtime: 'automatic', importSource: 'preact', development: false } },
    build: {
      outDir: folder,
      emptyOutDir: true,
      target: TARGET,
      cssTarget: TARGET,
      modulePreload: { polyfill: false },
      // A data: URL is refused by the page's Content-Security-Policy.
      assetsInlineLimit: 0,
      rolldownOptions: {
        input: [join(WEB, 'index.html'), join(WEB, 'sign-in.html')],
        output: {
          assetFileNames: 'assets/[name]-[hash][extname]',
          entryFileNames: 'assets/[name]-[hash].js',
          chunkFileNames: 'assets/[name]-[hash].js',
          codeSplitting: { groups: CHUNKS },
        },
      },
    },
  })
  writeManifest(folder)
}

/** The classic script that chooses light or dark before the first paint: a module would run after it. */
function bootScript() {
  const source = readFileSync(join(WEB, 'boot.js'), 'utf8')
  const name = `assets/boot-${hashOf(source)}.js`
  return {
    name: 'boot-script',
    generateBundle() {
      this.emitFile({ type: 'asset', fileName: name, source })
    },
    transformIndexHtml: {
      order: 'post',
      handler: (html) => html.replace('<!-- boot -->', `<script src="./${name}"></script>`),
    },
  }
}

/** `{ "assets/main-x.js": { "type": "text/javascript", "public": false } }`; the sign-in page's files are public. */
function writeManifest(folder) {
  const signIn = readFileSync(join(folder, 'sign-in.html'), 'utf8')
  const names = readdirSync(join(folder, 'assets')).sort()
  const entries = names.map((name) => [`assets/${name}`, { type: typeOf(name), public: signIn.includes(name) }])
  mkdirSync(folder, { recursive: true })
  rmSync(join(folder, '.vite'), { recursive: true, force: true })
  writeFileSync(join(folder, 'manifest.json'), `${JSON.stringify(Object.fromEntries(entries), null, 2)}\n`)
}

function typeOf(name) {
  if (name.endsWith('.css')) return 'text/css; charset=utf-8'
  if (name.endsWith('.svg')) return 'image/svg+xml'
  if (name.endsWith('.png')) return 'image/png'
  return 'text/javascript; charset=utf-8'
}

function hashOf(text) {
  return createHash('sha256').update(text).digest('base64url').slice(0, 8)
}

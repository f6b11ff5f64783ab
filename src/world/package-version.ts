import { createRequire } from 'node:module'

/** The version of this package, whose package.json is beside both src/ and dist/. */
export function versionOfPackage(): string {
  const { version } = createRequire(import.meta.url)('../../package.json') as { readonly version: string }
  return version
}

import { createRequire } from 'node:module'

/** Of this package, whose package.json stands beside both src/ and dist/. */
export function versionOfPackage(): string {
  const { version } = createRequire(import.meta.url)('../../package.json') as { readonly version: string }
  return version
}

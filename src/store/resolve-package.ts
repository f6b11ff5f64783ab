/**
 * The file of a package that the user may have installed, resolved from here, then from the app; undefined when it is
 * not installed. In a CommonJS bundle there is no import.meta.url, and webpack replaces it with the path on the machine
 * that built the bundle. webpack also treats an imported createRequire as its own, and bundles or warns: so
 * createRequire is fetched at run time.
 */
export function resolvePackage(name: string): string | undefined {
  const { createRequire } = process.getBuiltinModule('node:module')
  for (const from of [import.meta.url, process.argv[1], `${process.cwd()}/`]) {
    try {
      if (from !== undefined) return createRequire(from).resolve(name)
    } catch {
      // Not resolvable from there: try the next place.
    }
  }
  return undefined
}

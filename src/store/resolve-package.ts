/**
 * The file of a package that the user may have installed beside us, looked for from here, then from the app; undefined where there
 * is none. In a CommonJS bundle there is no import.meta.url, and webpack puts the path of the machine that built the bundle in its
 * place. webpack takes an imported createRequire for its own, and bundles or warns: so it is asked for at run time.
 */
export function resolvePackage(name: string): string | undefined {
  const { createRequire } = process.getBuiltinModule('node:module')
  for (const from of [import.meta.url, process.argv[1], `${process.cwd()}/`]) {
    try {
      if (from !== undefined) return createRequire(from).resolve(name)
    } catch {
      // Not from there: the next place is tried.
    }
  }
  return undefined
}

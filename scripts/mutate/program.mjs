import { readFileSync } from 'node:fs'
import { posix } from 'node:path'
import { transpile } from './transpile.mjs'

/**
 * Every module that the entries load, transpiled, with the mutants of those that `isMutated`. A mutant has a number in the whole program
 * (`id`) and one in its file (`index`).
 */
export function readProgram(root, entries, isMutated, cache) {
  const modules = new Map()
  const waiting = entries.flatMap(({ path, setup }) => (setup === undefined ? [path] : [setup, path]))
  for (const path of waiting) {
    if (modules.has(path)) continue
    const built = tryTranspile(root, path, isMutated(path), cache)
    if (built === undefined) continue // A program of another kind: the registry leaves it to Node.
    const imports = importsOf(path, readFileSync(built.file, 'utf8'))
    modules.set(path, { ...built, imports })
    waiting.push(...imports)
  }
  const [files, offsets, mutants] = [{}, {}, []]
  for (const [path, { file, mutants: own }] of modules) {
    files[path] = file
    if (own.length === 0) continue
    offsets[path] = mutants.length
    for (const mutant of own) mutants.push({ ...mutant, path, id: mutants.length })
  }
  return { root, modules, files, offsets, mutants }
}

function tryTranspile(root, path, isMutated, cache) {
  try {
    return transpile(root, path, isMutated, cache)
  } catch (error) {
    if (error.code === 'ENOENT') return undefined
    throw error
  }
}

/** The paths that a module imports, whether at once or later. */
function importsOf(path, code) {
  return [...code.matchAll(/\brequire\((["'])(\.[^"']+\.js)\1\)/g)].map(([, , name]) =>
    posix.join(posix.dirname(path), name).replace(/\.js$/, '.ts'),
  )
}

/** Every module that `path` loads, itself included. */
export function closureOf({ modules }, path) {
  const found = new Set([path])
  for (const each of found) for (const next of modules.get(each)?.imports ?? []) if (modules.has(next)) found.add(next)
  return found
}

import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join, posix } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import vm from 'node:vm'

/** Without `module`: the transpiled code does not use it, and a file may have a constant of that name. */
const PARAMETERS = ['exports', 'require', '__meta', '__mutant']

/**
 * Loads transpiled modules, and loads them again when a mutant changes what a module does while it loads. `files` has the JavaScript
 * of each path; `replaced` has modules that are given instead of packages; `switchOf` gives the `__mutant` of a path.
 */
export class ModuleRegistry {
  #root
  #files
  #replaced
  #switchOf
  #compiled = new Map()
  #packages = new Map()
  #scanned = new Set()
  #modules = new Map()
  /** How many modules are being loaded at this instant: what runs then runs once per load. */
  loading = 0

  constructor({ root, files, replaced = {}, switchOf = () => () => false }) {
    this.#root = root
    this.#files = files
    this.#replaced = replaced
    this.#switchOf = switchOf
  }

  /** The exports of a file, as a promise: a file of tests may await at its top level. */
  async load(path) {
    await this.#importScripts(path)
    const module = this.#module(path)
    await module.loaded
    return module.exports
  }

  /** Scripts may await at their top level, so `require` cannot load them: they are imported before the file is. */
  async #importScripts(path) {
    if (this.#scanned.has(path)) return
    this.#scanned.add(path)
    for (const [, name] of readFileSync(this.#files[path], 'utf8').matchAll(/\brequire\("(\.[^"]+)"\)/g)) {
      const target = posix.join(posix.dirname(path), name)
      const source = target.replace(/\.js$/, '.ts')
      if (this.#files[source] !== undefined) await this.#importScripts(source)
      else if (target.endsWith('.mjs') && !this.#packages.has(target)) {
        const script = await import(pathToFileURL(join(this.#root, target)).href)
        this.#packages.set(target, asNamespace(script))
      }
    }
  }

  forget(path) {
    this.#modules.delete(path)
  }

  forgetAll() {
    this.#modules.clear()
  }

  #module(path) {
    const known = this.#modules.get(path)
    if (known !== undefined) return known
    const module = { exports: {}, loaded: undefined }
    this.#modules.set(path, module)
    this.loading += 1
    try {
      const url = pathToFileURL(join(this.#root, path)).href
      const meta = { url, filename: join(this.#root, path), dirname: dirname(join(this.#root, path)) }
      meta.resolve = (name) => pathToFileURL(createRequire(url).resolve(name)).href
      const require = (name) => this.#require(path, name)
      module.loaded = this.#compile(path)(module.exports, require, meta, this.#switchOf(path))
    } catch (error) {
      this.#modules.delete(path)
      throw error
    } finally {
      this.loading -= 1
    }
    return module
  }

  #compile(path) {
    const known = this.#compiled.get(path)
    if (known !== undefined) return known
    const code = readFileSync(this.#files[path], 'utf8')
    const filename = pathToFileURL(join(this.#root, path)).href
    const wrapped = (kind) => `(${kind} function (${PARAMETERS.join(', ')}) {${code}\n})`
    const compile = (kind) => new vm.Script(wrapped(kind), { filename }).runInThisContext()
    let compiled
    try {
      compiled = compile('')
    } catch (error) {
      if (!/await/.test(error.message)) throw error
      compiled = compile('async') // It awaits at its top level.
    }
    this.#compiled.set(path, compiled)
    return compiled
  }

  #require(from, name) {
    if (this.#replaced[name] !== undefined) return this.#replaced[name]
    const path = name.startsWith('.') ? posix.join(posix.dirname(from), name).replace(/\.js$/, '.ts') : undefined
    if (path !== undefined && this.#files[path] !== undefined) return this.#module(path).exports
    const key = path ?? name
    const target = name.startsWith('file:') ? fileURLToPath(name) : name
    if (!this.#packages.has(key)) this.#packages.set(key, asNamespace(createRequire(join(this.#root, from))(target)))
    return this.#packages.get(key)
  }
}

/** What `import` gives of a package: its names, and `default`. */
function asNamespace(exported) {
  const isModule = exported?.[Symbol.toStringTag] === 'Module'
  const names = isModule ? exported : { ...exported, default: exported }
  return Object.defineProperty({ ...names }, '__esModule', { value: true })
}

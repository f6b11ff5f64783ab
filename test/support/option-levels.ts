import { join } from 'node:path'
import ts from 'typescript-5.9'
import { root } from '../../scripts/run.mjs'

/**
 * Finds every object that the public types let a caller pass, level by level: the options of each verb, and each object
 * within them. It reads the built declarations: the functions that the package exports, the methods of what they return, and
 * of what they pass to callbacks.
 */
export interface Door {
  /** `Mill.enqueue options`: the verb, and its parameter. */
  readonly name: string
  /** The path of each object: `['retry', 'backoff']`. `'*'` is any name, `'[0]'` an element. */
  readonly levels: readonly Level[]
}

export interface Level {
  readonly keys: readonly string[]
  /** The name of the object's type, where it has one. */
  readonly type: string
}

const ENTRIES = ['index.d.ts', 'postgres.d.ts', 'testing/index.d.ts'].map((file) => join(root, 'dist', file))

/** Objects of the caller, or of another library: they may have more fields than Millrace reads. */
const OPAQUE = new Set([
  'Codec',
  'StandardSchema',
  'InstantLike',
  'TemporalNamespace',
  // Only the id of a handle is read: `After`.
  '{ readonly id: string; }',
])

/** Types that TypeScript derives from ours: `Omit<EnqueueOptions, 'tx'>`. */
const MAPPED = new Set(['Omit', 'Pick', 'Partial'])

/** The store in a choice is internal, and the engine calls hooks. */
const INTERNAL = new Set(['StoreChoice', 'Hooks'])

/** It has methods, as opaque objects do, and is written for one call, like options. */
const PLAIN = new Set(['CodecType'])

export function optionDoors(): Door[] {
  const program = ts.createProgram(ENTRIES, {
    strict: true,
    noEmit: true,
    skipLibCheck: true,
    target: ts.ScriptTarget.ES2022,
    module: ts.ModuleKind.NodeNext,
    moduleResolution: ts.ModuleResolutionKind.NodeNext,
    types: ['node'],
  })
  const walk = new Walk(program.getTypeChecker())
  for (const entry of ENTRIES) walk.module(program.getSourceFile(entry) as ts.SourceFile)
  return [...walk.doors].map(([name, levels]) => ({ name, levels: [...levels.values()] }))
}

class Walk {
  readonly doors = new Map<string, Map<string, Level>>()
  readonly #checker: ts.TypeChecker
  readonly #seen = new Set<ts.Type | string>()

  constructor(checker: ts.TypeChecker) {
    this.#checker = checker
  }

  module(file: ts.SourceFile): void {
    const symbol = this.#checker.getSymbolAtLocation(file) as ts.Symbol
    for (const exported of this.#checker.getExportsOfModule(symbol)) {
      const real = exported.flags & ts.SymbolFlags.Alias ? this.#checker.getAliasedSymbol(exported) : exported
      if (real.flags & ts.SymbolFlags.Function) this.#callable(real.name, this.#checker.getTypeOfSymbol(real))
    }
  }

  #callable(name: string, type: ts.Type): void {
    for (const signature of type.getCallSignatures()) {
      for (const [label, given] of this.#parametersOf(signature)) this.#parameter(`${name} ${label}`, given)
      this.#surface(name, signature.getReturnType())
    }
  }

  /** Parameters by name; those of a rest tuple, also one that depends on the payload's type, one by one. */
  #parametersOf(signature: ts.Signature): [label: string, type: ts.Type][] {
    return signature.getParameters().flatMap((parameter): [string, ts.Type][] => {
      const type = this.#checker.getTypeOfSymbol(parameter)
      const declared = parameter.valueDeclaration
      if (declared === undefined || !ts.isParameter(declared) || declared.dotDotDotToken === undefined)
        return [[parameter.name, type]]
      const tuples = constituents(this.#checker.getBaseConstraintOfType(type) ?? type)
      return tuples.flatMap((tuple): [string, ts.Type][] =>
        this.#checker.isTupleType(tuple)
          ? this.#elementsOf(tuple).map((each, i) => [`${parameter.name}[${i}]`, each])
          : [],
      )
    })
  }

  /** A part of a tuple that depends on the payload's type counts as its longest possible form. */
  #elementsOf(list: ts.Type): readonly ts.Type[] {
    return this.#checker.getTypeArguments(list as ts.TypeReference).flatMap((element) => {
      if (!(element.flags & ts.TypeFlags.Conditional)) return [element]
      const tuples = constituents(this.#checker.getBaseConstraintOfType(element) ?? element)
      const lists = tuples.map((tuple) => this.#checker.getTypeArguments(tuple as ts.TypeReference))
      return lists.reduce((longest, each) => (each.length > longest.length ? each : longest), [])
    })
  }

  #parameter(door: string, type: ts.Type): void {
    this.#levels(door, type, [])
  }

  /** Records each object of a parameter, and visits the arguments of callbacks in it. */
  #levels(door: string, type: ts.Type, keys: readonly string[]): void {
    if (keys.length > 6) return
    for (const one of constituents(type)) {
      if (one.getCallSignatures().length > 0) this.#callback(door, one, keys)
      else if (this.#checker.isArrayType(one) || this.#checker.isTupleType(one))
        this.#elementsOf(one).forEach((element, index) => this.#levels(door, element, [...keys, `[${index}]`]))
      else if (this.#isOptions(one)) this.#object(door, one, keys)
    }
  }

  #object(door: string, type: ts.Type, keys: readonly string[]): void {
    const levels = this.doors.get(door) ?? new Map<string, Level>()
    this.doors.set(door, levels)
    const any = type.getStringIndexType()
    // Where every name is allowed, none is unknown.
    if (any === undefined) levels.set(keys.join('.'), { keys, type: this.#nameOf(type) })
    else this.#levels(door, any, [...keys, '*'])
    for (const property of type.getProperties())
      this.#levels(door, this.#checker.getTypeOfSymbol(property), [...keys, property.name])
  }

  /** The arguments of a callback can have methods; what it returns may be options again. */
  #callback(door: string, type: ts.Type, keys: readonly string[]): void {
    for (const signature of type.getCallSignatures()) {
      for (const [label, given] of this.#parametersOf(signature)) this.#surface(`${door} ${label}`, given)
      if (keys.length === 0 && !door.endsWith('()')) this.#levels(`${door}()`, signature.getReturnType(), [])
    }
  }

  /** An object that the package returns to its user: its methods are verbs. */
  #surface(name: string, type: ts.Type): void {
    for (const one of constituents(type)) {
      if (this.#seen.has(one)) continue
      this.#seen.add(one)
      const inner = this.#elementsIn(one)
      for (const each of inner) this.#surface(name, each)
      if (inner.length > 0 || !this.#isOurs(one)) continue
      const known = one.aliasSymbol?.name ?? one.symbol?.name
      const title = known === undefined || known.startsWith('__') ? name : known
      if (this.#seen.has(title) || INTERNAL.has(title)) continue
      this.#seen.add(title)
      if (one.getCallSignatures().length > 0) this.#callable(title, one)
      for (const property of one.getProperties()) this.#member(title, property)
    }
  }

  #member(title: string, property: ts.Symbol): void {
    const type = this.#checker.getTypeOfSymbol(property)
    if (type.getCallSignatures().length > 0) this.#callable(`${title}.${property.name}`, type)
    else this.#surface(`${title}.${property.name}`, type)
  }

  /** The element types of a promise, an array or an iterator. */
  #elementsIn(type: ts.Type): readonly ts.Type[] {
    if (this.#isOurs(type)) return []
    return (type as { target?: unknown }).target === undefined ? [] : this.#elementsOf(type)
  }

  #isOptions(type: ts.Type): boolean {
    if (!(type.flags & (ts.TypeFlags.Object | ts.TypeFlags.Intersection)) || !this.#isOurs(type)) return false
    const name = this.#nameOf(type)
    if (OPAQUE.has(name)) return false
    if (PLAIN.has(name)) return true
    const properties = type.getProperties()
    const isBranded = properties.some((property) => property.name.startsWith('__@'))
    const hasMethods = properties.some((property) => property.flags & ts.SymbolFlags.Method)
    return !isBranded && !hasMethods && (properties.length > 0 || type.getStringIndexType() !== undefined)
  }

  /** Declared by us, and not by TypeScript, Node or another package. */
  #isOurs(type: ts.Type): boolean {
    if (type.isIntersection()) return type.types.some((each) => this.#isOurs(each))
    const isMapped = MAPPED.has(type.aliasSymbol?.name ?? '')
    if (isMapped) return type.aliasTypeArguments?.[0] !== undefined && this.#isOurs(type.aliasTypeArguments[0])
    return [type.symbol, type.aliasSymbol].some((symbol) =>
      symbol?.declarations?.[0]?.getSourceFile().fileName.startsWith(join(root, 'dist')),
    )
  }

  #nameOf(type: ts.Type): string {
    const name = type.symbol?.name
    return name === undefined || name.startsWith('__') ? this.#checker.typeToString(type) : name
  }
}

function constituents(type: ts.Type): readonly ts.Type[] {
  return type.isUnion() ? type.types.flatMap(constituents) : [type]
}

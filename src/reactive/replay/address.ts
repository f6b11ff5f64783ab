/**
 * The address of a cell, spin or effect: `parent/kind:key#n`, where `n` counts earlier uses of the same kind and key
 * under the same parent in this run. It contains no source positions, which change with bundling, and nothing random:
 * two runs that take the same path give the same addresses.
 */
export type AddressKind = (typeof ADDRESS_KINDS)[number]

export const ADDRESS_KINDS = [
  'spin',
  'signal',
  'deferred',
  'mailbox',
  'track',
  'wait',
  'take',
  'sleep',
  'step',
  'now',
  'rand',
  'spawn',
  'scope',
] as const

export const ADDRESS_MAX = 200

export function formatAddress(parent: string, kind: AddressKind, key: string, n: number): string {
  return joinAddress(parent, `/${kind}:${escapeKey(key)}#${n}`)
}

/** An address of its parts; a parent that would make it too long is replaced by its hash. */
export function joinAddress(parent: string, own: string): string {
  return parent.length + own.length <= ADDRESS_MAX ? parent + own : `~${hash128(parent)}${own}`
}

/** Counts the uses of each kind and key under one parent. */
export class Scope {
  readonly path: string
  readonly #base: Scope | undefined
  #counts: Map<string, number> | undefined
  /** Signals without a key: most cells are, and a field is faster than the map. */
  #signals: number

  /** Counting continues where `base` is when a kind and key is first used here. */
  constructor(path: string, base?: Scope) {
    this.path = path
    this.#base = base
    this.#signals = base === undefined ? 0 : base.#signals
  }

  next(kind: AddressKind, key: string): number {
    if (kind === 'signal' && key === '') return this.#signals++
    const name = countedName(kind, key)
    const counts = (this.#counts ??= new Map<string, number>())
    const n = counts.get(name) ?? this.#countBefore(name) ?? 0
    counts.set(name, n + 1)
    return n
  }

  #countBefore(name: string): number | undefined {
    for (let base = this.#base; base !== undefined; base = base.#base) {
      const n = base.#counts?.get(name)
      if (n !== undefined) return n
    }
    return undefined
  }

  /** Forgets a kind and key that nothing uses any more; the next use gets the number 0 again. */
  forget(name: string): void {
    this.#counts?.delete(name)
  }

  address(kind: AddressKind, key: string): string {
    return formatAddress(this.path, kind, key, this.next(kind, key))
  }

  reset(): void {
    this.#counts?.clear()
    this.#signals = 0
  }
}

/** The name under which the uses of a kind and key are counted. */
export function countedName(kind: AddressKind, key: string): string {
  return key === '' ? kind : `${kind}:${key}`
}

/** A key may not contain the separators of an address: two places could get the same address. */
export function escapeKey(key: string): string {
  return /[/#%]/.test(key) ? key.replace(/[/#%]/g, (c) => `%${c.charCodeAt(0).toString(16)}`) : key
}

/**
 * A 128-bit hash of a text in 32 hex characters. It has to be the same everywhere and to spread well; it is not
 * cryptographic. Four lanes of multiply and rotate, each with its own odd start and step, then mixed.
 */
export function hash128(text: string): string {
  const lanes = [0x9e3779b9, 0x85ebca6b, 0xc2b2ae35, 0x27d4eb2f]
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i)
    for (let lane = 0; lane < 4; lane++) {
      const mixed = Math.imul((lanes[lane] as number) ^ unit, STEPS[lane] as number)
      lanes[lane] = ((mixed << 13) | (mixed >>> 19)) + (lanes[(lane + 1) & 3] as number)
    }
  }
  return lanes.map((lane, i) => finish(lane ^ text.length ^ (lanes[(i + 1) & 3] as number))).join('')
}

const STEPS = [0xcc9e2d51, 0x1b873593, 0x7feb352d, 0x846ca68b] as const

function finish(lane: number): string {
  let h = lane
  h = Math.imul(h ^ (h >>> 16), 0x21f0aaad)
  h = Math.imul(h ^ (h >>> 15), 0x735a2d97)
  return ((h ^ (h >>> 15)) >>> 0).toString(16).padStart(8, '0')
}

/**
 * A value of the app (payload, result, meta) as JSON that loses nothing: the order of keys, big integers, dates. Texts, booleans, null
 * and numbers that JSON has exactly are themselves; everything else is an object with `is`.
 */
export type Shown = string | number | boolean | null | ShownTag | ShownObject | ShownList

export interface ShownObject {
  readonly is: 'object'
  /** The name of its class, unless it is a plain object. */
  readonly of?: string | undefined
  /** In stored order. */
  readonly entries: readonly Entry[]
  /** Entries that are not shown, because the value is too large. */
  readonly more?: number | undefined
}

export type Entry = readonly [name: string, value: Shown]

export interface ShownList {
  readonly is: 'list'
  /** 'Set', when it is one. */
  readonly of?: string | undefined
  readonly items: readonly Shown[]
  readonly more?: number | undefined
}

/**
 * A value with a tag: Date, BigInt, URL, Uint8Array, undefined, NaN, Infinity, -0, Temporal and the app's own types. `text` is how it is
 * written. 'redacted': hidden by a rule. 'encrypted': `text` is the name of the key. 'cut': a text that is shown in part; `text` is the part.
 * 'map': its entries are lists of two.
 */
export interface ShownTag {
  readonly is: 'tag'
  readonly tag: string
  readonly text: string
  readonly entries?: readonly (readonly [key: Shown, value: Shown])[] | undefined
  readonly more?: number | undefined
}

/** One value of a job, with its size. */
export interface ShownValue {
  readonly value: Shown
  /** The value as indented text, for the view "text" and for copying; redacted alike. */
  readonly text: string
  /** The size of the whole text in bytes of UTF-8. */
  readonly bytes: number
  /** True: this is a part. `?all=1` gives up to 1 MiB. */
  readonly isCut: boolean
  /** Values were hidden from this role. */
  readonly isRedacted: boolean
}

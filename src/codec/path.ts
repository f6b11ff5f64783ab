import { CodecError, type Problem } from '../errors.js'
import { show, showText } from './show.js'

/** One step from a value to a part of it: a key, an index, or the written form of a tagged value. */
export type Segment = string | number | { readonly tag: string; readonly written: unknown }

/** A longer path is shown by its two ends: a value can be nested a thousand levels deep. */
const SEGMENTS_SHOWN = 24
/** A longer key is shown in quotes, cut. */
const KEY_SHOWN_MAX = 60

/**
 * Formats a path relative to the encoded value: `user.db`, `lines[3]["unit price"]`, `users.get("ada")`, or '' for the value
 * itself. {@link joinPath} puts the caller's name for the root before it.
 */
export function formatPath(segments: readonly Segment[]): string {
  const shown = segments.length <= SEGMENTS_SHOWN ? segments : segments.slice(0, SEGMENTS_SHOWN / 2)
  const head = formatSegments(shown)
  if (shown === segments) return head
  const left = segments.length - SEGMENTS_SHOWN
  return `${head}…(${left} more)…${formatSegments(segments.slice(-SEGMENTS_SHOWN / 2))}`
}

/** The path of a part below a named root: `payload` and `user.db` give `payload.user.db`. */
export function joinPath(root: string, path: string): string {
  if (path === '' || root === '') return root + path
  return /^[[.<]/u.test(path) ? root + path : `${root}.${path}`
}

/** An error about the part at `path`; `saying` continues the sentence that the path begins. */
export function codecError(path: string, saying: string, options?: { cause?: unknown }): CodecError {
  return new CodecError(path, `${path === '' ? ROOT : path} ${saying}`, options)
}

/** The error as one problem of a larger call, with the path from the caller's root: `problemOf(error, 'payload')`. */
export function problemOf(error: CodecError, root: string): Problem {
  const start = `${error.path === '' ? ROOT : error.path} `
  const message = error.message.startsWith(start) ? error.message.slice(start.length) : error.message
  return { path: joinPath(root, error.path), message }
}

const ROOT = 'the value'

function formatSegments(segments: readonly Segment[]): string {
  let text = ''
  for (let at = 0; at < segments.length; at++) {
    const segment = segments[at] as Segment
    if (typeof segment === 'object') {
      const inside = formatTagged(segment.tag, segment.written, segments, at)
      text += inside.text
      at += inside.consumed
    } else text += formatKey(segment, text === '')
  }
  return text
}

/** The path into a tagged value, in terms of the value and not of its written form. */
function formatTagged(
  tag: string,
  written: unknown,
  segments: readonly Segment[],
  at: number,
): { readonly text: string; readonly consumed: number } {
  const next = segments[at + 1]
  if (tag === 'Error') return { text: '', consumed: next === 'props' ? 1 : 0 }
  if (typeof next !== 'number') return { text: tag === 'Map' || tag === 'Set' ? '' : `<${tag}>`, consumed: 0 }
  if (tag === 'Set') return { text: `.values()[${next}]`, consumed: 1 }
  if (tag !== 'Map') return { text: `<${tag}>`, consumed: 0 }
  if (segments[at + 2] !== 1) return { text: `.keys()[${next}]`, consumed: 2 }
  const key: unknown = (written as readonly (readonly unknown[])[])[next]?.[0]
  const isShort = key === null || (typeof key !== 'object' && typeof key !== 'function')
  return { text: isShort ? `.get(${show(key)})` : `.values()[${next}]`, consumed: 2 }
}

function formatKey(key: string | number, isFirst: boolean): string {
  if (typeof key === 'number') return `[${key}]`
  if (key.length > KEY_SHOWN_MAX || !/^[\p{L}_$][\p{L}\p{N}_$-]*$/u.test(key)) return `[${showText(key)}]`
  return isFirst ? key : `.${key}`
}

/** Room for the mark in the largest case: `… [9007199254740991 more characters]`. */
const MARK_BYTES = 48

/**
 * Cuts a text so that it takes at most `bytes` as a JSON string in UTF-8, quotes included, and appends how much is missing.
 * It reads only the part that it keeps, so a huge text costs no more than a small one.
 */
export function cutText(text: string, bytes: number): string {
  if (text.length + 2 <= bytes && jsonBytes(text) <= bytes) return text
  const kept = keptLength(text, bytes - 2 - MARK_BYTES)
  return `${text.slice(0, kept)}… [${text.length - kept} more characters]`
}

/** How many bytes a text takes as a JSON string in UTF-8, quotes included. */
export function jsonBytes(text: string): number {
  let bytes = 2
  for (let at = 0; at < text.length; at++) bytes += unitBytes(text, at)
  return bytes
}

/** How many code units fit. A surrogate pair is kept or cut as a whole; a lone surrogate counts like any other unit. */
function keptLength(text: string, bytes: number): number {
  let left = bytes
  for (let at = 0; at < text.length; at++) {
    left -= unitBytes(text, at)
    if (left < 0) return isPair(text, at - 1) ? at - 1 : at
  }
  return text.length
}

/** The bytes of the code unit at a position. Each half of a surrogate pair counts two of its four. */
function unitBytes(text: string, at: number): number {
  const unit = text.charCodeAt(at)
  if (unit < 0x20) return isShortEscape(unit) ? 2 : 6
  if (unit === 0x22 || unit === 0x5c) return 2
  if (unit < 0x80) return 1
  if (unit < 0x800) return 2
  if (unit < 0xd800 || unit > 0xdfff) return 3
  return isPair(text, at) || isPair(text, at - 1) ? 2 : 6
}

/** Backspace, tab, line feed, form feed and carriage return have escapes of two characters; the rest take six. */
const isShortEscape = (unit: number): boolean => unit >= 8 && unit <= 13 && unit !== 11

function isPair(text: string, at: number): boolean {
  return isHigh(text.charCodeAt(at)) && isLow(text.charCodeAt(at + 1))
}

const isHigh = (unit: number): boolean => unit >= 0xd800 && unit <= 0xdbff
const isLow = (unit: number): boolean => unit >= 0xdc00 && unit <= 0xdfff

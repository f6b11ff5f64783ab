/** How many characters of a foreign text a message repeats. */
const SHOWN_MAX = 60

/** How many characters of another error's message a message repeats. */
const REASON_MAX = 500

/** How many characters are searched for a password before the text is cut. */
const COVERED_MAX = 4_000

/** A value for a message: short, on one line, without passwords. Never throws. */
export function show(value: unknown): string {
  switch (typeof value) {
    case 'string':
      return showText(value)
    case 'bigint':
      return `${cut(String(value))}n`
    case 'object':
      return value === null ? 'null' : article(className(value))
    case 'function':
      return 'a function'
    case 'number':
    case 'boolean':
    case 'undefined':
    case 'symbol':
      return cut(String(value))
  }
}

/** A text in quotes, cut when it is long. Only its beginning is read, so a huge text costs nothing. */
export function showText(text: string): string {
  const covered = withoutPassword(beginning(text))
  if (covered.length <= SHOWN_MAX) return JSON.stringify(covered)
  return `${JSON.stringify(covered.slice(0, SHOWN_MAX))}… (${text.length} characters)`
}

/** A text that is one URL, perhaps in quotes or blanks. A password may contain any character. */
const ADDRESS = /^(\W*(?:jdbc:)?(?:[a-z][a-z0-9+.-]*:\/\/|postgres(?:ql)?:\/*)[^:@/?#]*):.*@/is
/** A URL inside a sentence, which may contain other URLs. */
const LOGIN = /(:\/\/[^\s:@/?#]*):\S*@/g
const PARAMETER = /([?&]password=)[^&#\s]*/gi

/** Masks the password of a URL, also of one that cannot be parsed. */
export function withoutPassword(text: string): string {
  return withoutLogins(text.replace(ADDRESS, '$1:***@'))
}

function withoutLogins(text: string): string {
  return text.replaceAll(LOGIN, '$1:***@').replaceAll(PARAMETER, '$1***')
}

/** The class name of a value, or "object" when it cannot be read. */
export function className(value: object): string {
  try {
    const prototype: unknown = Object.getPrototypeOf(value)
    if (prototype === null) return 'object'
    const name: unknown = (prototype as { constructor?: { name?: unknown } }).constructor?.name
    return typeof name === 'string' && name !== '' ? cut(name) : 'object'
  } catch {
    // A proxy or a getter threw; the message is built without the name.
    return 'object'
  }
}

/** The message of a thrown value, for the end of another message. The value may be no error, or a hostile one. */
export function reason(error: unknown): string {
  try {
    const message: unknown = error instanceof Error ? error.message : error
    return typeof message === 'string' ? cut(withoutLogins(beginning(message)), REASON_MAX) : show(message)
  } catch {
    // Reading the value threw again.
    return 'it throws when it is read'
  }
}

/** What is searched for a password. Where the text is cut, one may go on: it ends with the mark that ends a login. */
function beginning(text: string): string {
  return text.length <= COVERED_MAX ? text : `${text.slice(0, COVERED_MAX)}@`
}

function cut(text: string, max = SHOWN_MAX): string {
  return text.length <= max ? text : `${text.slice(0, max)}…`
}

const article = (name: string): string => (/^[aeiou]/iu.test(name) ? `an ${name}` : `a ${name}`)

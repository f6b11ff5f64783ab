/** How many characters of a stranger's text a message repeats. */
const SHOWN_MAX = 60

/** And how many of another error's message. */
const REASON_MAX = 500

/** As far as a text is searched for a password before it is cut. */
const COVERED_MAX = 4_000

/** A value as a message shows it: short, on one line, without passwords, and never an error of its own. */
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

/** A text in quotes, cut when it is long. Only its beginning is looked at, so a giant text costs nothing. */
export function showText(text: string): string {
  const covered = withoutPassword(text.slice(0, COVERED_MAX))
  if (covered.length <= SHOWN_MAX) return JSON.stringify(covered)
  return `${JSON.stringify(covered.slice(0, SHOWN_MAX))}… (${text.length} characters)`
}

/** A whole text that is an address, with quotes or blanks around it perhaps: a password may have anything in it. */
const ADDRESS = /^(\W*(?:jdbc:)?(?:[a-z][a-z0-9+.-]*:\/\/|postgres(?:ql)?:\/*)[^:@/?#]*):.*@/is
/** An address somewhere in a sentence, which may begin with another one and go on. */
const LOGIN = /(:\/\/[^\s:@/?#]*):\S*@/g
const PARAMETER = /([?&]password=)[^&#\s]*/gi

/** What stands where a password stands in an address is covered, also in one that cannot be read. */
export function withoutPassword(text: string): string {
  return withoutLogins(text.replace(ADDRESS, '$1:***@'))
}

function withoutLogins(text: string): string {
  return text.replaceAll(LOGIN, '$1:***@').replaceAll(PARAMETER, '$1***')
}

/** The class a value says it is of, or "object"; a value that refuses to tell is an object. */
export function className(value: object): string {
  try {
    const prototype: unknown = Object.getPrototypeOf(value)
    if (prototype === null) return 'object'
    const name: unknown = (prototype as { constructor?: { name?: unknown } }).constructor?.name
    return typeof name === 'string' && name !== '' ? cut(name) : 'object'
  } catch {
    // A proxy or a getter that throws must not turn a good message into a bad one.
    return 'object'
  }
}

/** What an error says of itself, for the end of another message; it may be no error at all, or a hostile one. */
export function reason(error: unknown): string {
  try {
    const message: unknown = error instanceof Error ? error.message : error
    return typeof message === 'string' ? cut(withoutLogins(message.slice(0, COVERED_MAX)), REASON_MAX) : show(message)
  } catch {
    // Reading it threw again; there is no more to say.
    return 'it throws even when it is looked at'
  }
}

function cut(text: string, max = SHOWN_MAX): string {
  return text.length <= max ? text : `${text.slice(0, max)}…`
}

const article = (name: string): string => (/^[aeiou]/iu.test(name) ? `an ${name}` : `a ${name}`)

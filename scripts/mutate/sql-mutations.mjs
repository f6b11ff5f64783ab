const STATEMENT = /\b(select\b[^]*\bfrom|insert into|update \S+\s+set|delete from|order by \S|limit [?$\d])/
const CONDITION = /\b(where|and|on) (not )?[\w.]+ (=|<|>|<>|<=|>=|is|in)\s/

/** A template string that is a statement, or a part of one. Tables are made once, by migrations with tests of their own. */
export function looksLikeSql(raw) {
  return (STATEMENT.test(raw) || CONDITION.test(raw)) && !/\bcreate (table|index|unique)\b/.test(raw)
}

/**
 * Mutations of SQL in a template string, each as the text of the whole template.
 * @param {string} raw with its backticks
 * @returns {{ operator: string, original: string, mutated: string, code: string, offset: number }[]}
 */
export function sqlMutations(raw) {
  const masked = maskCode(raw)
  return RULES.flatMap(({ pattern, to }) =>
    [...masked.matchAll(pattern)].flatMap((match) => {
      const [from, end] = [match.index, match.index + match[0].length]
      const original = raw.slice(from, end)
      return [to(original)].flat().map((mutated) => change(raw, from, end, mutated))
    }),
  ).concat(droppedClauses(raw, masked))
}

const RULES = [
  { pattern: /(?<=\s)<(?=\s)/g, to: () => '<=' },
  { pattern: /(?<=\s)<=(?=\s)/g, to: () => '<' },
  { pattern: /(?<=\s)>(?=\s)/g, to: () => '>=' },
  { pattern: /(?<=\s)>=(?=\s)/g, to: () => '>' },
  { pattern: /(?<=\s)<>(?=\s)/g, to: () => '=' },
  { pattern: /\bis not null\b/g, to: () => 'is null' },
  { pattern: /\bis null\b/g, to: () => 'is not null' },
  { pattern: /\bnot exists\b/g, to: () => 'exists' },
  { pattern: /\bnot in\b/g, to: () => 'in' },
  { pattern: /\bdesc\b/g, to: () => 'asc' },
  { pattern: /\basc\b/g, to: () => 'desc' },
  { pattern: /(?<=\border by [^\n,()`]+)(?=\n|`|\s+limit)(?<!desc|asc)/g, to: () => ' desc' },
  // A limit of 1 reads the only row, or asks whether there is any: one more changes nothing.
  { pattern: /\blimit (\?\d*|\$\d+(::\w+)*|(?!1\b)\d+|§+)/g, to: (limit) => [`${limit} + 1`, `${limit} - 1`] },
  { pattern: /\bmin(?=\()/g, to: () => 'max' },
  { pattern: /\bmax(?=\()/g, to: () => 'min' },
  { pattern: /(?<=\s)\+(?=\s)/g, to: () => '-' },
  { pattern: /(?<=\s)-(?=\s)/g, to: () => '+' },
  { pattern: /(?<!\bis (not )?)\bdistinct\b/g, to: () => '' },
]

/** `and …` or `or …` up to where the clause ends, left out; the first clause of a `where` is left out with its `and`. */
function droppedClauses(raw, masked) {
  return [...masked.matchAll(/\b(and|or)\s/g)].flatMap((match) => {
    if (match[1] === 'and' && isBetween(masked, match.index)) return []
    const end = clauseEnd(masked, match.index + match[0].length)
    if (end === undefined) return []
    const clause = raw.slice(match.index, end).trimEnd()
    return [change(raw, match.index, match.index + clause.length, '')]
  })
}

const isBetween = (masked, at) => /^and\b/.test(masked.slice(at)) && /\bbetween\s+\S+\s+$/.test(masked.slice(0, at))

const ENDS =
  /^(and|or|order|group|limit|returning|on|union|having|when|then|else|end|for|offset|set|where|left|join|do)\b/

/** Where a condition ends, at its own depth of brackets and outside `case … end`; undefined where the text ends inside it. */
function clauseEnd(masked, from) {
  let depth = 0
  for (let at = from; at < masked.length; at += 1) {
    const char = masked[at]
    if (isBetween(masked, at)) at += 'and'.length
    else if (char === '(') depth += 1
    else if (char === ')') {
      if (depth === 0) return at
      depth -= 1
    } else if (depth > 0) continue
    else if (char === '`' || char === ',' || char === ';') return at
    else if (/\s/.test(masked[at - 1]) && ENDS.test(masked.slice(at))) {
      if (at > from) return at
    } else if (/^case\b/.test(masked.slice(at))) return undefined
  }
  return undefined
}

/** Comments, quoted text and `${…}` are replaced by signs of the same length, so that no rule changes them. */
function maskCode(raw) {
  let out = ''
  for (let at = 0; at < raw.length;) {
    const rest = raw.slice(at)
    const skipped = /^--[^\n]*/.exec(rest)?.[0] ?? /^'[^']*'/.exec(rest)?.[0] ?? substitution(rest)
    out += skipped === undefined ? raw[at] : '§'.repeat(skipped.length)
    at += skipped?.length ?? 1
  }
  return out
}

function substitution(rest) {
  if (!rest.startsWith('${')) return undefined
  let depth = 0
  for (let at = 1; at < rest.length; at += 1) {
    if (rest[at] === '{') depth += 1
    if (rest[at] === '}' && (depth -= 1) === 0) return rest.slice(0, at + 1)
  }
  return undefined
}

function change(raw, from, end, mutated) {
  const lineStart = raw.lastIndexOf('\n', from - 1) + 1
  const lineEnd = raw.indexOf('\n', end) === -1 ? raw.length : raw.indexOf('\n', end)
  return {
    operator: 'sql',
    original: raw.slice(lineStart, lineEnd).trim(),
    code: raw.slice(0, from) + mutated + raw.slice(end),
    mutated: (raw.slice(lineStart, from) + mutated + raw.slice(end, lineEnd)).trim() || '(dropped)',
    offset: from,
  }
}

import { shipped } from './source.js'
import type { Breach, Rule } from './source.js'

const ALLOWED = new Set(['croner', 'hono', '@hono/node-server', 'citty', 'alien-signals'])
const INSTALL_SCRIPTS = ['preinstall', 'install', 'postinstall', 'prepublish', 'prepare']
const DEPENDENCIES_DOC = 'docs/decisions/0002-dependencies.md'
const ERRORS_DOC = 'docs/errors.md'

/** What a user installs with Millrace: few packages, each allowed and with a written reason; no script runs at install. */
export const dependenciesAreAgreed: Rule = ({ manifest, doc }) => {
  const required = Object.keys(manifest.dependencies ?? {})
  const optional = Object.keys(manifest.optionalDependencies ?? {})
  const peers = Object.keys(manifest.peerDependencies ?? {})
  const decisions = doc(DEPENDENCIES_DOC)
  return [
    ...required.filter((name) => !ALLOWED.has(name)).map((name) => told(`${name} is not an agreed dependency`)),
    ...optional.map((name) => told(`${name} would be installed for all; an optional peer is asked for by name`)),
    ...peers
      .filter((name) => manifest.peerDependenciesMeta?.[name]?.optional !== true)
      .map((name) => told(`the peer ${name} is not optional`)),
    ...INSTALL_SCRIPTS.filter((name) => name in (manifest.scripts ?? {})).map((name) =>
      told(`the script "${name}" would run at install`),
    ),
    ...(manifest.bundleDependencies || manifest.bundledDependencies ? [told('bundles dependencies')] : []),
    ...[...required, ...peers]
      .filter((name) => !hasHeading(decisions, name))
      .map((name) => ({ file: DEPENDENCIES_DOC, line: 1, what: `has no heading and paragraph for ${name}` })),
  ]
}

/** Every code an error may carry has a heading, and so an anchor, in docs/errors.md; and no heading is left without its code. */
export const errorCodesAreDocumented: Rule = (house) => {
  const text = house.doc(ERRORS_DOC)
  const used = new Map<string, Breach>()
  for (const source of shipped(house)) {
    for (const { kind, text: code, line } of source.code) {
      if (kind !== 'string' || !/^E_[A-Z][A-Z0-9_]*$/.test(code) || used.has(code)) continue
      used.set(code, { file: source.path, line, what: `${code} has no heading in ${ERRORS_DOC}` })
    }
  }
  const stale = headings(text)
    .flatMap((heading) => heading.match(/\bE_[A-Z0-9_]+/g) ?? [])
    .filter((code) => !used.has(code))
    .map((code) => ({ file: ERRORS_DOC, line: 1, what: `${code} is in no source any more` }))
  return [...[...used].filter(([code]) => !hasHeading(text, code)).map(([, breach]) => breach), ...stale]
}

function told(what: string): Breach {
  return { file: 'package.json', line: 1, what }
}

const headings = (text: string | undefined): string[] => text?.match(/^#{1,6}\s.*$/gm) ?? []

function hasHeading(text: string | undefined, name: string): boolean {
  return headings(text).some((heading) => heading.split(/[\s`,:()]+/).includes(name))
}

import { show } from '../../codec/show.js'
import { InvalidOptionsError } from '../../errors.js'
import { isWorkflow } from '../../job/definition/brands.js'
import { checkFields } from '../../job/definition/check-fields.js'
import type { Fields } from '../../job/definition/check-fields.js'
import type { DashboardListenOptions } from '../../mill/dashboard-options.js'
import { internalsOf } from '../../mill/internals.js'
import type { MillInternals } from '../../mill/internals.js'
import type { Mill } from '../../mill/mill-type.js'
import { versionOfPackage } from '../../world/package-version.js'
import { ROLES } from '../protocol/verbs.js'
import { App } from './app.js'
import { readAssets } from './assets.js'
import { Bulks } from './act/bulks.js'
import type { Parts } from './parts.js'
import { Show } from './show/redact.js'
import { Scanner } from './search/scan.js'
import { SharedReads } from './live/shared-reads.js'
import { themeSheet } from './theme.js'

const TOKEN_NONCES = 3

/** A 256-bit secret: three nonces have 288. */
export function newSecret({ world }: MillInternals): string {
  const bytes = Array.from({ length: TOKEN_NONCES }, () => [...world.ids.nonce()]).flat()
  return Buffer.from(bytes).toString('base64url')
}

/** Checks what was given, or throws all problems. */
export function checkGiven(subject: string, mill: unknown, options: unknown, shape: Fields): MillInternals {
  const internals = typeof mill === 'object' && mill !== null ? internalsOf(mill) : undefined
  if (internals === undefined) {
    const isPromise = typeof (mill as { then?: unknown } | undefined)?.then === 'function'
    throw new InvalidOptionsError(subject, [
      { path: 'mill', message: `must be a mill, got ${show(mill)}${isPromise ? '; await millrace() first' : ''}` },
    ])
  }
  const problems = checkFields(options, '', shape)
  if (problems.length > 0) throw new InvalidOptionsError(subject, problems)
  return internals
}

/** The server of a dashboard, without a socket. `port`: its own, where it has one. */
export function makeApp(
  mill: Mill,
  options: DashboardListenOptions,
  { token, port }: { readonly token: string | undefined; readonly port: () => number | undefined },
): App {
  const internals = internalsOf(mill) as MillInternals
  const rules = [...internals.redact, ...(options.redact ?? [])]
  const shows = new Map(ROLES.map((role) => [role, new Show(rules, role)]))
  const workflows = (job: string): boolean =>
    mill.jobs().some((listed) => listed.name === job && isWorkflow(listed.job))
  const parts: Parts = {
    mill,
    internals,
    world: internals.world,
    log: internals.log,
    options,
    assets: readAssets(),
    shared: new SharedReads(internals.world.clock),
    showFor: (role) => shows.get(role) as Show,
    hasRules: rules.length > 0,
    isSealed: (job) => internals.registry.encrypts(job) ?? internals.hasKeys,
    isWorkflow: workflows,
    scanner: new Scanner(),
    bulks: new Bulks(),
    version: versionOfPackage(),
  }
  return new App(parts, {
    token,
    secret: options.secret ?? newSecret(internals),
    port,
    theme: themeSheet(options.theme),
  })
}

import type { Problem } from '../../errors.js'

/**
 * The part of the Standard Schema interface we call, described structurally: zod, valibot, arktype and others fit it,
 * and none of them is a dependency.
 */
export interface StandardSchema<Input = unknown, Output = Input> {
  readonly '~standard': {
    readonly version: 1
    readonly vendor: string
    readonly validate: (value: unknown) => SchemaResult<Output> | Promise<SchemaResult<Output>>
    readonly types?: { readonly input: Input; readonly output: Output } | undefined
  }
}

export type SchemaResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly SchemaIssue[] }

export interface SchemaIssue {
  readonly message: string
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined
}

export type Checked =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly problems: readonly Problem[] }

/** Checks a payload with its job's schema or `accepts`. */
export function checkPayload(
  rules: { readonly input?: StandardSchema | undefined; readonly accepts?: ((payload: never) => boolean) | undefined },
  payload: unknown,
): Checked | Promise<Checked> {
  if (rules.input !== undefined) {
    const result = rules.input['~standard'].validate(payload)
    return isThenable(result) ? Promise.resolve(result).then(checked) : checked(result)
  }
  const accepted: unknown = rules.accepts === undefined ? true : rules.accepts(payload as never)
  if (isThenable(accepted)) return Promise.resolve(accepted).then((settled) => acceptedOr(settled, payload))
  return acceptedOr(accepted, payload)
}

function acceptedOr(accepted: unknown, payload: unknown): Checked {
  if (!accepted)
    return {
      ok: false,
      problems: [{ path: 'payload', message: 'was not accepted: the job’s accepts() returned false for it' }],
    }
  return { ok: true, value: payload }
}

function checked(result: SchemaResult<unknown>): Checked {
  if (result.issues === undefined) return { ok: true, value: result.value }
  return { ok: false, problems: result.issues.map((issue) => ({ path: pathText(issue), message: issue.message })) }
}

function pathText(issue: SchemaIssue): string {
  let text = 'payload'
  for (const part of issue.path ?? []) {
    const key = typeof part === 'object' ? part.key : part
    text += typeof key === 'number' ? `[${key}]` : `.${String(key)}`
  }
  return text
}

/** Also true for a promise of another realm or library, which is not `instanceof Promise`. */
export function isThenable<T>(value: T | PromiseLike<T>): value is PromiseLike<T> {
  return typeof value === 'object' && value !== null && typeof (value as { then?: unknown }).then === 'function'
}

/** For a promise that may not be awaited, or not in time. Its failure is reported in another way, and must not end the process. */
export function ignoreRejection<T extends PromiseLike<unknown>>(promise: T): T {
  Promise.resolve(promise).catch(() => undefined)
  return promise
}

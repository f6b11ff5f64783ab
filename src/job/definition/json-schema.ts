import type { StandardSchema } from './schema.js'

/** The part of Standard JSON Schema that is called, described structurally: zod, arktype and others fit it. */
interface StandardJsonSchema {
  readonly jsonSchema?: { readonly input?: (options: { readonly target: string }) => unknown } | undefined
}

/** The version that forms and validators understand best; a library that lacks it throws. */
const TARGET = 'draft-2020-12'

/** What may be given, as JSON Schema; undefined where the library cannot say it, such as for a function of its own. */
export function jsonSchemaOf(input: StandardSchema | undefined): Readonly<Record<string, unknown>> | undefined {
  const { jsonSchema } = (input?.['~standard'] ?? {}) as StandardJsonSchema
  try {
    const made = jsonSchema?.input?.({ target: TARGET })
    return typeof made === 'object' && made !== null ? (made as Record<string, unknown>) : undefined
  } catch {
    // Not every schema can be written as JSON Schema.
    return undefined
  }
}

/** A field of a form that was made from a JSON Schema. */
export interface FormField {
  readonly name: string
  readonly kind: 'text' | 'number' | 'boolean' | 'choice' | 'json'
  readonly choices: readonly string[]
  readonly isRequired: boolean
  readonly description: string
}

interface SchemaNode {
  readonly type?: unknown
  readonly properties?: Readonly<Record<string, SchemaNode>>
  readonly required?: readonly string[]
  readonly enum?: readonly unknown[]
  readonly description?: unknown
}

/** The fields of an object schema; undefined when it is no plain object: then the payload is written as JSON. */
export function fieldsOf(schema: unknown): FormField[] | undefined {
  const { type, properties, required } = (schema ?? {}) as SchemaNode
  if (type !== 'object' || properties === undefined) return undefined
  return Object.entries(properties).map(([name, node]) => ({
    name,
    kind: kindOf(node),
    choices: (node.enum ?? []).map(String),
    isRequired: required?.includes(name) ?? false,
    description: typeof node.description === 'string' ? node.description : '',
  }))
}

function kindOf({ type, enum: choices }: SchemaNode): FormField['kind'] {
  if (choices !== undefined && choices.every((each) => typeof each === 'string')) return 'choice'
  if (type === 'string') return 'text'
  if (type === 'number' || type === 'integer') return 'number'
  return type === 'boolean' ? 'boolean' : 'json'
}

/** The payload that the fields make, or what is wrong with one of them. */
export interface FormResult {
  readonly payload: string
  readonly problems: Readonly<Record<string, string>>
}

export function payloadOf(fields: readonly FormField[], values: Readonly<Record<string, string>>): FormResult {
  const problems: Record<string, string> = {}
  const entries = fields.flatMap(({ name, kind, isRequired }): [string, unknown][] => {
    const text = values[name] ?? ''
    if (text === '' && kind !== 'boolean') {
      if (isRequired) problems[name] = `${name} is required.`
      return []
    }
    try {
      return [[name, readValue(kind, text)]]
    } catch (error) {
      problems[name] = `${name}: ${(error as Error).message}`
      return []
    }
  })
  return { payload: JSON.stringify(Object.fromEntries(entries), null, 2), problems }
}

function readValue(kind: FormField['kind'], text: string): unknown {
  if (kind === 'json') return JSON.parse(text)
  if (kind === 'boolean') return text === 'true'
  if (kind !== 'number') return text
  const value = Number(text)
  if (Number.isNaN(value)) throw new Error(`expected a number, got "${text}"`)
  return value
}

/** The values of the fields from a payload as JSON text. */
export function valuesFrom(payload: string | null): Record<string, string> {
  if (payload === null) return {}
  try {
    const read = JSON.parse(payload) as Record<string, unknown>
    return Object.fromEntries(
      Object.entries(read).map(([name, value]) => [name, typeof value === 'string' ? value : JSON.stringify(value)]),
    )
  } catch {
    return {} // A payload that was cut or hidden in part fills no fields.
  }
}

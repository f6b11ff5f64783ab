/**
 * JSON text that is the same for equal values: sorted keys, no `undefined` fields, sorted members of a Set and entries of a Map.
 * It is for comparison and cannot be read back. It builds text and not objects, because a key may be `__proto__`.
 */
export function canonicalJson(json: string): string {
  return written(JSON.parse(json))
}

function written(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(written).join(',')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const record = value as Readonly<Record<string, unknown>>
  const tag = record['$']
  const members = record['v']
  if ((tag === 'Set' || tag === 'Map') && Array.isArray(members))
    return `{"$":"${tag}","v":[${members.map(written).sort().join(',')}]}`
  const fields = Object.keys(record).filter((key) => !isUndefined(record[key]))
  return `{${fields
    .sort()
    .map((key) => `${JSON.stringify(key)}:${written(record[key])}`)
    .join(',')}}`
}

function isUndefined(value: unknown): boolean {
  return typeof value === 'object' && value !== null && (value as { $?: unknown }).$ === 'undefined'
}

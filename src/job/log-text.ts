/** Turns what a handler logged into one line of text, as `console.log` would show it, without ever throwing. */
export function inspectParts(parts: readonly unknown[]): string {
  return parts.map(inspectPart).join(' ')
}

function inspectPart(part: unknown): string {
  if (typeof part === 'string') return part
  try {
    if (part instanceof Error) return `${part.name}: ${part.message}`
    if (typeof part === 'object' && part !== null) return JSON.stringify(part) ?? '[unprintable]'
    return String(part)
  } catch {
    return '[unprintable]' // A getter that throws, a cycle: a log line is never worth a failed job.
  }
}

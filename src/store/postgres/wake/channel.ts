/** What notifications of a schema are sent on. An identifier is cut at 63 bytes, and both sides must mean the same one. */
export function channelOf(schema: string): string {
  return `millrace ${schema}`.replaceAll(/[^\w -]/g, '_').slice(0, 63)
}

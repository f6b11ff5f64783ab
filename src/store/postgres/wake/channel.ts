/** PostgreSQL's limit of the name of a channel. */
const CHANNEL_MAX = 63

/**
 * The notification channel of a schema. PostgreSQL truncates an identifier at 63 bytes, and sender and listener must
 * use the same one.
 */
export function channelOf(schema: string): string {
  return `millrace ${schema}`.replaceAll(/[^\w -]/g, '_').slice(0, CHANNEL_MAX)
}

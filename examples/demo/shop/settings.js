/** The options of every mill of the shop. The log is off: the terminal and the dashboard show what happens. */
export const settings = {
  version: 'v1.42',
  concurrency: 10,
  queues: { mail: { rate: { max: 100, per: '1m' } }, billing: 8, reports: 2 },
  logger: false,
}
export const HOSTS = ['web-1', 'web-2', 'web-3', 'web-4']

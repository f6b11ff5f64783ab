/** Names of this machine, which no other machine can have: a page of another site that was rebound to 127.0.0.1 has its own name. */
const LOOPBACK = ['127.0.0.1', '[::1]', 'localhost']

/** Whether a request names a host that the dashboard was given. `port` is ours; undefined where another server listens. */
export function isKnownHost(host: string | null, hosts: readonly string[], port: number | undefined): boolean {
  if (host === null) return false
  const given = host.toLowerCase()
  if (hosts.some((each) => isSameHost(each.toLowerCase(), given))) return true
  const [name, at] = split(given)
  return LOOPBACK.includes(name) && (port === undefined || at === port)
}

/** A name without a port is that name on any port. */
function isSameHost(known: string, given: string): boolean {
  return known === given || known === split(given)[0]
}

const HTTP_PORT = 80

function split(host: string): [name: string, port: number] {
  const found = /^(\[[^\]]*\]|[^:]*)(?::(\d{1,5}))?$/.exec(host)
  if (found === null) return [host, Number.NaN]
  return [found[1] as string, found[2] === undefined ? HTTP_PORT : Number(found[2])]
}

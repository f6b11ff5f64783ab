/**
 * OpenTelemetry's trace context, if the app uses OpenTelemetry. Its API stores what was registered under one global symbol, so
 * it is found without an import or a dependency. The symbol is read at each call, because tracing is often set up after a mill
 * was created; without OpenTelemetry that is the only cost. An error of tracing never affects a job: there is no trace then.
 */
export interface TraceContext {
  getStore(): Carrier | undefined
  run(carrier: unknown, call: () => unknown): unknown
}

/** The fields of the propagator: `traceparent`, `tracestate`, `baggage`. */
export type Carrier = Record<string, string>

/** Characters of all fields: what W3C allows for baggage and tracestate. It leaves half of the room to values of the app. */
const CARRIER_MAX = 8_192 + 512

export const traceContext: TraceContext = {
  getStore() {
    const found = findTelemetry()
    if (found === undefined) return undefined
    try {
      const carrier: Carrier = {}
      found.propagation.inject(found.context.active(), carrier, boundedSetter())
      return Object.keys(carrier).length === 0 ? undefined : carrier
    } catch {
      return undefined
    }
  },

  run(carrier, call) {
    const found = findTelemetry()
    const extracted = found === undefined ? undefined : extract(found, carrier)
    return found === undefined || extracted === undefined ? call() : found.context.with(extracted, call)
  },
}

/** The two parts of the API that are used: a context manager and a propagator. */
interface Telemetry {
  readonly context: { active(): unknown; with(context: unknown, call: () => unknown): unknown }
  readonly propagation: {
    inject(context: unknown, carrier: Carrier, setter: Setter): void
    extract(context: unknown, carrier: unknown, getter: Getter): unknown
  }
}
interface Setter {
  set(carrier: Carrier, key: string, value: string): void
}
interface Getter {
  get(carrier: unknown, key: string): string | undefined
  keys(carrier: unknown): string[]
}

const API = Symbol.for('opentelemetry.js.api.1')

function findTelemetry(): Telemetry | undefined {
  const api = (globalThis as { [API]?: Partial<Telemetry> })[API]
  return api?.context === undefined || api.propagation === undefined ? undefined : (api as Telemetry)
}

function extract({ context, propagation }: Telemetry, carrier: unknown): unknown {
  try {
    return propagation.extract(context.active(), carrier, GETTER)
  } catch {
    return undefined
  }
}

/** Leaves out a field that does not fit, so that huge baggage cannot make an enqueue fail. */
function boundedSetter(): Setter {
  let left = CARRIER_MAX
  return {
    set(carrier, key, value) {
      const text = String(value)
      if (text.length + key.length > left) return
      left -= text.length + key.length
      carrier[key] = text
    },
  }
}

const GETTER: Getter = {
  get: (carrier, key) => fields(carrier)[key],
  keys: (carrier) => Object.keys(fields(carrier)),
}

const fields = (carrier: unknown): Carrier =>
  typeof carrier === 'object' && carrier !== null ? (carrier as Carrier) : {}

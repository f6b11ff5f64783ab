/** How the tabs of one browser share a stream: one of them leads, reads it, and passes its frames on. */
export interface Tabs {
  /** Calls `lead` once this tab is the leader: at once when it is alone, else when the leader has closed. */
  elect(lead: () => void): void
  send(message: TabMessage): void
  onMessage(listen: (message: TabMessage) => void): void
}

export type TabMessage =
  /** A tab shows these topics from now on. */
  | { readonly kind: 'want'; readonly tab: string; readonly topics: readonly string[] }
  /** The leader asks every tab what it shows. */
  | { readonly kind: 'who' }
  | { readonly kind: 'frame'; readonly frame: unknown }
  | { readonly kind: 'status'; readonly status: unknown }

/** Web Locks elect, a BroadcastChannel carries. Where a browser has not both, each tab leads itself. */
export function shareTabs(name: string): Tabs {
  if (typeof BroadcastChannel === 'undefined' || navigator.locks === undefined) return aloneTab()
  const channel = new BroadcastChannel(name)
  return {
    elect: (lead) => {
      const forever = (): Promise<never> => {
        lead()
        return new Promise(() => undefined)
      }
      navigator.locks.request(name, forever).catch(lead)
    },
    send: (message) => channel.postMessage(message),
    onMessage: (listen) => channel.addEventListener('message', ({ data }) => listen(data as TabMessage)),
  }
}

export function aloneTab(): Tabs {
  return { elect: (lead) => lead(), send: () => undefined, onMessage: () => undefined }
}

import { applyPatch } from '../../protocol.js'
import type { Frame, Snapshot, Stale } from '../../protocol.js'

/** What a tab knows of a topic. */
export interface Held {
  readonly snapshot: Snapshot | undefined
  /** The server could not read it lately: the snapshot is true as of its `now`. */
  readonly stale: Stale | undefined
  /** It does not exist, or this user may not see it. */
  readonly gone: string | undefined
}

export const NOTHING_HELD: Held = { snapshot: undefined, stale: undefined, gone: undefined }

/** The knowledge of a topic after a frame. A patch without the snapshot before it changes nothing. */
export function afterFrame(held: Held, frame: Exclude<Frame, { event: 'bye' }>): Held {
  switch (frame.event) {
    case 'snapshot':
      return { snapshot: { ...frame.data, id: frame.data.id ?? frame.id }, stale: undefined, gone: undefined }
    case 'patch':
      if (held.snapshot === undefined) return held
      return { snapshot: { ...applyPatch(held.snapshot, frame.data), id: frame.id }, stale: undefined, gone: undefined }
    case 'gone':
      return { ...held, gone: frame.data.text }
    case 'stale':
      return { ...held, stale: frame.data }
    default:
      return frame satisfies never
  }
}

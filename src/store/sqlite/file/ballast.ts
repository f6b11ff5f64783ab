import { closeSync, fsyncSync, openSync, statSync, truncateSync, unlinkSync, writeSync } from 'node:fs'

/**
 * Space reserved for a full disk. When nothing more can be written even a DELETE fails, so finished jobs could not be
 * recorded and would run again. Deleting this file frees just enough space to record them. The store takes the space
 * again when it is available, which also shows that the disk has space again.
 */
export const BALLAST_BYTES = 4 * 1024 * 1024

export class Ballast {
  readonly #path: string
  constructor(database: string) {
    this.#path = `${database}-ballast`
  }

  /** Reserves the space; false when there is not enough. */
  take(): boolean {
    if (this.isTaken()) return true
    try {
      this.#write()
      return true
    } catch {
      this.release() // A part of it would only take space.
      return false
    }
  }

  isTaken(): boolean {
    try {
      const stats = statSync(this.#path)
      return stats.isFile() && stats.size >= BALLAST_BYTES
    } catch {
      return false
    }
  }

  /** Removes whatever has this name, of any owner; what cannot be removed is left and does no harm. */
  release(): void {
    for (const free of [unlinkSync, truncateSync])
      try {
        return free(this.#path)
      } catch {
        // Missing, a folder, or another user's file in a shared folder. A file that may not be removed can be
        // truncated.
      }
  }

  /** Written and not only extended: a sparse file reserves nothing. */
  #write(): void {
    const file = openSync(this.#path, 'w', 0o600)
    try {
      const block = Buffer.alloc(256 * 1024, 'millrace ballast, see docs/guides/operations.md\n')
      for (let written = 0; written < BALLAST_BYTES; written += block.length) writeSync(file, block)
      fsyncSync(file)
    } finally {
      closeSync(file)
    }
  }
}

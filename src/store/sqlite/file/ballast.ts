import { closeSync, fsyncSync, openSync, statSync, truncateSync, unlinkSync, writeSync } from 'node:fs'

/**
 * Room kept back for a full disk. When nothing more can be written, even a DELETE fails, so finished jobs could not be
 * recorded and would run again. Letting go of this file gives just enough room to record them; it is taken again when there
 * is space, and that is also how we notice that there is.
 */
export const BALLAST_BYTES = 4 * 1024 * 1024

export class Ballast {
  readonly #path: string
  constructor(database: string) {
    this.#path = `${database}-ballast`
  }

  /** Takes the room. False when there is not enough of it. */
  take(): boolean {
    if (this.isTaken()) return true
    try {
      this.#write()
      return true
    } catch {
      this.release() // A part of it would only be in the way.
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

  /** Whatever is under this name, of any owner: what cannot be removed is left, and nothing breaks. */
  release(): void {
    for (const letGo of [unlinkSync, truncateSync])
      try {
        return letGo(this.#path)
      } catch {
        // Not there, a folder, another user's in a shared folder: a file of ours that may not be removed can be emptied.
      }
  }

  /** Written out, not merely made long: a sparse file reserves nothing. */
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

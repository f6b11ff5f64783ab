import { spawnSync } from 'node:child_process'
import { closeSync, openSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'

const [MOUNT, UNMOUNT] = ['mount', 'umount']

/** A file system of a few megabytes in memory, and a way to fill it. */
export class SmallDisk {
  folder
  #filler

  /** @returns {{ disk: SmallDisk } | { skip: string }} */
  static mount(folder, megabytes) {
    if (process.platform !== 'linux') return { skip: `a tmpfs is needed, and this is ${process.platform}` }
    const mounted = spawnSync(MOUNT, ['-t', 'tmpfs', '-o', `size=${megabytes}m`, 'tmpfs', folder], {
      encoding: 'utf8',
    })
    if (mounted.status !== 0)
      return { skip: `no tmpfs can be mounted here: ${mounted.stderr?.trim() ?? mounted.error?.message}` }
    return { disk: new SmallDisk(folder) }
  }

  constructor(folder) {
    this.folder = folder
  }

  /** Takes every byte that is free at this moment. */
  fill() {
    this.#filler ??= openSync(join(this.folder, 'filler'), 'a')
    for (const size of [256 * 1024, 4096]) for (const block = Buffer.alloc(size, 1); this.#takes(block););
  }

  free() {
    if (this.#filler !== undefined) closeSync(this.#filler)
    this.#filler = undefined
    rmSync(join(this.folder, 'filler'), { force: true })
  }

  unmount() {
    this.free()
    spawnSync(UNMOUNT, [this.folder])
  }

  #takes(block) {
    try {
      return writeSync(this.#filler, block) === block.length
    } catch (error) {
      if (error.code === 'ENOSPC') return false
      throw error
    }
  }
}

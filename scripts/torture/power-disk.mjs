import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { basename, join } from 'node:path'

/** The files of a database that power-shim.c watches. The -shm is memory and is lost with the power. */
const ENDINGS = ['', '-wal', '-journal']

/** The disk under the power shim, for the supervisor: `aside` has what is really on it. */
export class PowerDisk {
  #file
  #aside
  constructor(file, aside) {
    this.#file = file
    this.#aside = aside
    this.#prime()
  }

  env(library) {
    return { LD_PRELOAD: library, TORTURE_FILE: this.#file, TORTURE_ASIDE: this.#aside }
  }
  /** With this added, the process's n-th flush of the WAL fails, and drops the dirty pages. */
  static forgetAt(n) {
    return { TORTURE_FORGET: String(n) }
  }

  /** The power is cut (all processes with the file open are dead): the files become what was flushed of them. */
  cut() {
    for (const ending of ENDINGS) this.#restore(`${this.#file}${ending}`)
    rmSync(`${this.#file}-shm`, { force: true })
    this.#prime()
  }

  /** A copy to read. Reading recovers and checkpoints the WAL, which must be left to the engine that starts next. */
  copyTo(folder) {
    const copy = join(folder, basename(this.#file))
    for (const ending of [...ENDINGS, '-shm']) {
      rmSync(`${copy}${ending}`, { force: true })
      if (ending !== '-shm' && existsSync(`${this.#file}${ending}`))
        copyFileSync(`${this.#file}${ending}`, `${copy}${ending}`)
    }
    return copy
  }

  #restore(path) {
    const entry = join(this.#aside, `entry.${basename(path)}`)
    if (!existsSync(entry)) return rmSync(path, { force: true })
    const bytes = join(this.#aside, `${basename(path)}.${readFileSync(entry, 'utf8')}`)
    if (existsSync(bytes)) copyFileSync(bytes, path)
    else if (existsSync(path)) truncateSync(path)
    else writeFileSync(path, '') // The name was flushed, but none of its bytes.
  }

  /** The current content of the files counts as flushed. */
  #prime() {
    rmSync(this.#aside, { recursive: true, force: true })
    mkdirSync(this.#aside, { recursive: true })
    for (const ending of ENDINGS) {
      const path = `${this.#file}${ending}`
      if (!existsSync(path)) continue
      const { ino } = statSync(path)
      copyFileSync(path, join(this.#aside, `${basename(path)}.${ino}`))
      writeFileSync(join(this.#aside, `entry.${basename(path)}`), String(ino))
    }
  }
}

import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterEach, beforeAll } from 'vitest'
import { bundle, urlInBundle } from '../../scripts/bundle.mjs'
import { freshStore } from '../support/fresh-store.js'

/** A message of a child program, and when this process received it. */
export interface Message {
  readonly at: number
  readonly what: string
  readonly [field: string]: unknown
}

/**
 * A real process that runs a small program on the built package. The program has `millrace`, `job` and the rest of the public
 * API in scope, `file` (the store) and `say(what, fields)`; each call of `say` is one message here.
 */
export class Child {
  readonly process: ChildProcess
  readonly messages: Message[] = []
  readonly exited: Promise<number | string>
  readonly #waiting = new Set<() => void>()
  #errors = ''

  constructor(folder: string, file: string, program: string) {
    const path = join(folder, `program-${(programs += 1)}.mjs`)
    writeFileSync(path, `${PREAMBLE}\nconst file = ${JSON.stringify(file)}\n${program}\n`)
    this.process = spawn(process.execPath, [path], { stdio: ['ignore', 'pipe', 'pipe'] })
    this.process.stderr?.on('data', (data: Buffer) => (this.#errors += data.toString()))
    if (this.process.stdout !== null)
      createInterface({ input: this.process.stdout }).on('line', (line) => {
        this.messages.push({ at: Date.now(), ...(JSON.parse(line) as { what: string }) })
        for (const look of this.#waiting) look()
      })
    this.exited = new Promise((resolve) =>
      this.process.once('close', (code, signal) => {
        resolve(code ?? signal ?? 'unknown')
        for (const look of this.#waiting) look()
      }),
    )
  }

  /** Its standard error so far. */
  get errors(): string {
    return this.#errors
  }

  /** Waits for this message, or fails with the messages so far when the program ends or the time is up. */
  async receives(what: string, withinMs = 30_000): Promise<Message> {
    return new Promise((resolve, reject) => {
      const done = (settle: () => void): void => {
        clearTimeout(timer)
        this.#waiting.delete(look)
        settle()
      }
      const look = (): void => {
        const said = this.messages.find((each) => each.what === what)
        if (said !== undefined) done(() => resolve(said))
        else if (this.process.exitCode !== null || this.process.signalCode !== null)
          done(() => reject(this.#unheard(what, 'it ended')))
      }
      const timer = setTimeout(() => done(() => reject(this.#unheard(what, `${withinMs} ms passed`))), withinMs)
      this.#waiting.add(look)
      look()
    })
  }

  /** Kills by the process id that was started here, never by name. */
  async kill(): Promise<void> {
    this.process.kill('SIGKILL')
    await this.exited
  }

  #unheard(what: string, why: string): Error {
    return new Error(
      `"${what}" was not heard: ${why}; heard ${JSON.stringify(this.messages.map((s) => s.what))}; ${this.#errors}`,
    )
  }
}

let programs = 0
const PREAMBLE = `
import * as front from ${JSON.stringify(urlInBundle('index.js'))}
const { millrace, job, sqlite, Abort, Snooze } = front
const say = (what, fields = {}) => process.stdout.write(JSON.stringify({ what, ...fields }) + '\\n')
`

/** A folder, a store (in it, where that is a file), and children that end with the test. */
export class ProcessFixture {
  readonly folder = mkdtempSync(join(tmpdir(), 'millrace-processes-'))
  readonly file = freshStore(this.folder, 'jobs.db')
  readonly #children: Child[] = []

  run(program: string, file = this.file): Child {
    const child = new Child(this.folder, file, program)
    this.#children.push(child)
    return child
  }

  async clear(): Promise<void> {
    for (const child of this.#children) await child.kill()
    rmSync(this.folder, { recursive: true, force: true })
  }
}

/** The folder, store and children of the current test. */
export function useProcesses(): () => ProcessFixture {
  let place: ProcessFixture | undefined
  beforeAll(bundle)
  afterEach(async () => {
    await place?.clear()
    place = undefined
  })
  return () => (place ??= new ProcessFixture())
}

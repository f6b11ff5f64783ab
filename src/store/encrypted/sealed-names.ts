import { isSealed } from '../../job/secrets/keyring.js'
import type { Keyring } from '../../job/secrets/keyring.js'
import type { OnDuplicate } from '../../job/rules/unique.js'
import type { JobRow, NewJob } from '../store.js'
import { sealNewJob } from './sealed-rows.js'

/** Whether jobs of this name are encrypted; undefined for a name that this mill has no definition of. */
export type Encrypts = (name: string) => boolean | undefined

/** Which names are sealed. A job without a definition here, which `unknown` runs or an edit changes, stays as it was found. */
export class SealedNames {
  readonly #encrypts: Encrypts
  readonly #foundSealed = new Set<string>()

  constructor(encrypts: Encrypts) {
    this.#encrypts = encrypts
  }

  has(name: string | undefined): name is string {
    return name !== undefined && (this.#encrypts(name) ?? this.#foundSealed.has(name))
  }

  found({ name, payload }: Pick<JobRow, 'name' | 'payload'>): void {
    if (isSealed(payload) && this.#encrypts(name) === undefined) this.#foundSealed.add(name)
  }
}

/** What a verb needs to seal. */
export interface Sealing {
  readonly keys: Keyring
  readonly seals: SealedNames
}

export function sealNew(
  { keys, seals }: Sealing,
  rows: readonly NewJob[],
  onDuplicate: OnDuplicate,
): readonly NewJob[] {
  return rows.map((row) => (seals.has(row.name) ? sealNewJob(keys, row, onDuplicate) : row))
}

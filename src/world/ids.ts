import { randomFillSync } from 'node:crypto'

/** The source of identities. A fence or an id is never derived from a clock or a sequence alone. */
export interface Ids {
  /** A UUIDv7: ordered by time, and within one process strictly increasing. */
  jobId(nowMs: number): string
  /** A worker's identity, random at each start: 16 characters. */
  workerId(): string
  /** A claim's fence: a random whole number below 2^52. */
  fence(): number
  /** 12 random bytes: the nonce of an encrypted value. */
  nonce(): Uint8Array
}

/** Ids from the operating system's randomness, drawn in blocks because a call for each is slow. */
export function systemIds(): Ids {
  return makeIds(blockwise())
}

/** Ids from any source of random 32-bit words; the simulator passes a seeded one. */
export function makeIds(word: () => number): Ids {
  let lastMs = 0
  let counter = 0
  const text = Buffer.from('00000000-0000-7000-8000-000000000000', 'latin1')
  /** Writes the hexadecimal digits of a number at a position. */
  const put = (at: number, digits: number, value: number): void => {
    for (let i = at + digits - 1, left = value; i >= at; i -= 1, left >>>= 4) text[i] = DIGITS[left & 0xf] as number
  }

  return {
    jobId(nowMs) {
      // Within one millisecond the 12 + 14 bits after the time count up from a random start, so ids of one process sort in
      // the order of creation. When the clock is set back, or the counter is used up, the next millisecond is used early.
      if (nowMs > lastMs || counter >= COUNTER_MAX) {
        lastMs = nowMs > lastMs ? nowMs : lastMs + 1
        counter = word() & 0x1ffffff
        put(0, 8, Math.floor(lastMs / 0x10000))
        put(9, 4, lastMs % 0x10000)
      } else counter += 1
      put(15, 3, counter >>> 14)
      put(19, 4, 0x8000 | (counter & 0x3fff))
      put(24, 4, word())
      put(28, 8, word())
      // Converted in one step: a concatenated text stays a tree of its parts, and costs four times as much.
      return text.toString('latin1')
    },
    workerId: () => `${hex8(word())}${hex8(word())}`,
    fence: () => (word() >>> 12) * 0x1_0000_0000 + (word() >>> 0),
    nonce: () => new Uint8Array(Uint32Array.of(word(), word(), word()).buffer),
  }
}

const COUNTER_MAX = 0x3ffffff
const DIGITS = Buffer.from('0123456789abcdef', 'latin1')
const hex8 = (n: number): string => (n >>> 0).toString(16).padStart(8, '0')

function blockwise(): () => number {
  const block = new Uint32Array(1024)
  let next = block.length
  return () => {
    if (next === block.length) {
      randomFillSync(block)
      next = 0
    }
    return block[next++] as number
  }
}

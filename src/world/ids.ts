import { randomFillSync } from 'node:crypto'

/** Where identities come from. A fence or an id is never derived from a clock or a sequence alone. */
export interface Ids {
  /** A UUIDv7: ordered by time, and within one process strictly increasing. */
  jobId(nowMs: number): string
  /** A worker's identity, random at each start: 16 characters. */
  workerId(): string
  /** A claim's fence: a random whole number below 2^52. */
  fence(): number
}

/** Ids from the operating system's randomness, drawn in blocks because a call for each is slow. */
export function systemIds(): Ids {
  return makeIds(blockwise())
}

/** Ids from any source of random 32-bit words; the simulator passes a seeded one. */
export function makeIds(word: () => number): Ids {
  let lastMs = 0
  let counter = 0
  let head = ''

  return {
    jobId(nowMs) {
      // Within one millisecond the 12 + 14 bits after the time count up from a random start, so ids of one process
      // sort in the order they were made; a clock that steps back, or a spent counter, borrows from the next millisecond.
      if (nowMs > lastMs || counter >= COUNTER_MAX) {
        lastMs = nowMs > lastMs ? nowMs : lastMs + 1
        counter = word() & 0x1ffffff
        const hex = lastMs.toString(16).padStart(12, '0')
        head = `${hex.slice(0, 8)}-${hex.slice(8)}-7`
      } else counter += 1
      const low = (0x8000 | (counter & 0x3fff)).toString(16)
      return `${head}${hex3(counter >>> 14)}-${low}-${hex4(word())}${hex8(word())}`
    },
    workerId: () => `${hex8(word())}${hex8(word())}`,
    fence: () => (word() >>> 12) * 0x1_0000_0000 + (word() >>> 0),
  }
}

const COUNTER_MAX = 0x3ffffff

const BYTES = Array.from({ length: 256 }, (_, i) => i.toString(16).padStart(2, '0'))
const hex2 = (n: number): string => BYTES[n & 0xff] as string
const hex3 = (n: number): string => ((n & 0xfff) | 0x1000).toString(16).slice(1)
const hex4 = (n: number): string => hex2(n >>> 8) + hex2(n)
const hex8 = (n: number): string => hex2(n >>> 24) + hex2(n >>> 16) + hex2(n >>> 8) + hex2(n)

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

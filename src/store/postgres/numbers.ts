/** The parts of a job's ref: the same in every statement and table. */

/** Day and number share one bigint that JavaScript can represent: 2^38 numbers, and days until 2059. */
export const NUMBER_BITS = 38
export const DAY_MS = 86_400_000
/**
 * The class of our advisory locks, apart from the app's. All names hash to 1,024 locks: the lock table of a server
 * holds a few thousand.
 */
export const LOCK_CLASS = 0x6d696c6c
export const LOCK_SLOTS = 1_024

/** What a job's number is made of: alike in every statement, and in the tables. */

/** Days and numbers share one bigint that JavaScript can hold: 2^38 numbers, and days until 2059. */
export const NUMBER_BITS = 38
export const DAY_MS = 86_400_000
/** Tells our advisory locks from the app's. A thousand serve for all names: a server has room for a few thousand. */
export const LOCK_CLASS = 0x6d696c6c
export const LOCK_SLOTS = 1_024

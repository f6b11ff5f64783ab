import { openDoor } from './shared-postgres.js'

/** Vitest calls it once before all tests, and what it gives once after them. */
export const setup = openDoor

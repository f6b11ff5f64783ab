import { openDoor } from './shared-postgres.js'

/** Vitest calls it once before all tests, and the function that it returns once after them. */
export const setup = openDoor

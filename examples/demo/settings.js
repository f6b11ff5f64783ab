/** Short times, so that the demo is short. The defaults are a lease of 15 s and a poll of 5 s. */
export const times = { lease: '2s', poll: '200ms' }

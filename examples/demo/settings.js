/** Short times, so that the demo fits into a coffee break. The defaults are a lease of 15 s and a poll of 5 s. */
export const times = { lease: '2s', poll: '200ms' }

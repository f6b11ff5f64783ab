/** vitest reads this when it is imported outside a worker of its own; it has to be imported first. */
globalThis.__vitest_worker__ ??= {
  config: { fakeTimers: {}, snapshotOptions: {} },
  environment: { name: 'node' },
  filepath: '',
}

/** A promise that was broken, in words. */
export class BrokenPromise extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'BrokenPromise'
  }
}

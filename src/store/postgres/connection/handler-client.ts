import { TransactionError } from '../../../errors.js'

/**
 * A client as a handler gets it, valid for one call. Afterwards another handler gets the connection, and a statement
 * that the first one did not await must not run in the second one's transaction. Nor may the handler close the
 * connection, which the engine still uses.
 */
export class HandlerClient {
  readonly client: object
  #isOver = false

  constructor(client: object) {
    this.client = new Proxy(client, { get: (target, name) => this.#property(target, name) })
  }

  revoke(): void {
    this.#isOver = true
  }

  #property(target: object, name: string | symbol): unknown {
    const value: unknown = Reflect.get(target, name, target)
    if (typeof value !== 'function' || name === 'constructor') return value
    return (...given: unknown[]) => {
      const refusal = this.#refusal(name)
      if (refusal !== undefined) return refused(refusal, name, given)
      const result: unknown = Reflect.apply(value, target, given)
      return result === target ? this.client : result
    }
  }

  #refusal(name: string | symbol): TransactionError | undefined {
    const isEnd = name === 'end' || name === 'release'
    if (this.#isOver && (isEnd || name === 'query'))
      return new TransactionError(
        'E_TX_NOT_OPEN',
        `tx.${name}(): the tx of ctx.transaction() is valid only during its call; await what you do with it, and use a client of your own for other work`,
      )
    if (isEnd)
      return new TransactionError(
        'E_TX_IN_USE',
        'ctx.transaction(): tx cannot be closed while its transaction is open; leave it open: Millrace or your pool closes it',
      )
    return undefined
  }
}

/**
 * Reports the error as pg does: by callback if one is passed, else as a rejected promise; only `release` is
 * synchronous.
 */
function refused(refusal: TransactionError, name: string | symbol, given: readonly unknown[]): unknown {
  if (name === 'release') throw refusal
  const callback = given.at(-1)
  if (typeof callback !== 'function') return Promise.reject(refusal)
  callback(refusal)
  return undefined
}

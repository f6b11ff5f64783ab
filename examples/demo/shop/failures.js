/* What goes wrong in the shop. Each error is thrown by a function of its own, so that it has a place and a fingerprint. */

export class CardError extends Error {
  constructor(message, options) {
    super(message, options)
    this.code = 'E_DECLINED'
  }
}

export class TimeoutError extends Error {}

export function declineCard() {
  throw new CardError('card declined', { cause: new Error('HTTP 402 from api.pay') })
}

export function waitForMailServer() {
  throw new TimeoutError('the mail server did not answer within 30 s')
}

/** A stack of 60 frames. */
export function descend(depth = 60) {
  if (depth > 0) return descend(depth - 1)
  Error.stackTraceLimit = 60
  try {
    throw new RangeError('the category tree is deeper than 60')
  } finally {
    Error.stackTraceLimit = 10
  }
}

export function refuseMarkup() {
  throw new Error(`<script>alert('error')</script> is no address`)
}

/** As a handler would have thrown it. */
export function thrownBy(act) {
  try {
    return act()
  } catch (error) {
    return error
  }
}

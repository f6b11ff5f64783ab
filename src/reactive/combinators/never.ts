import { PARK, Request } from '../spins/request.js'
import type { Spin } from '../spins/spin.js'
import { spin } from '../spins/spin.js'

/** Never completes; it can only be cancelled. */
export function never(): Spin<never> {
  return spin(function* () {
    return yield* new NeverRequest()
  })
}

/** Parks until the run is superseded or cancelled. */
export class NeverRequest extends Request<never> {
  constructor() {
    super('never')
  }

  protected override perform(): unknown {
    return PARK
  }
}

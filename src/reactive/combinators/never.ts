import { PARK, Request } from '../request.js'
import type { Spin } from '../spin.js'
import { spin } from '../spin.js'

/** Never completes; it can only be cancelled. */
export function never(): Spin<never> {
  return spin(function* () {
    return yield* new Forever()
  })
}

/** Parks until the run is superseded or cancelled. */
export class Forever extends Request<never> {
  constructor() {
    super('never')
  }

  protected override perform(): unknown {
    return PARK
  }
}

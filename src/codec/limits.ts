/** How deep braces and brackets may nest in written text: above any sane payload, and below the limit of the call stack. */
export const DEPTH_MAX = 1000

/** How many values one text may hold. A shared reference is written each time, so a small graph can unfold without end. */
export const PARTS_MAX = 5_000_000

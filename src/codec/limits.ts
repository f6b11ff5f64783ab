/** How deep braces and brackets may nest in written text. Far above any sane payload, far below any stack's end. */
export const DEPTH_MAX = 1000

/** How many values one text may hold: shared references are written again each time, so a small graph can unfold for ever. */
export const PARTS_MAX = 5_000_000

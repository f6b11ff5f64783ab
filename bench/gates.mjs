import { showNumber, showSummary } from './table.mjs'

/**
 * A gate is a promised figure. The benchmark reports whether it was met and never asserts it: a busy machine is no
 * fault of the engine. Pure.
 *
 * @typedef {{ median: number, min: number, max: number, rounds: number }} Summary
 * @typedef {{ name: string, measured: Summary | undefined, unit: string, least?: number, most?: number, goal?: number }} Gate
 */

/** Undefined: it was not measured. @param {Gate} gate */
export function isMet({ measured, least, most }) {
  if (measured === undefined) return undefined
  return (least === undefined || measured.median >= least) && (most === undefined || measured.median <= most)
}

/** @param {Gate} gate */
function reachesGoal({ measured, least, goal }) {
  if (measured === undefined || goal === undefined) return false
  return least !== undefined ? measured.median >= goal : measured.median <= goal
}

/** One line per gate: met or missed, its name, the required and the measured value. @param {Gate} gate */
export function formatGate(gate) {
  const met = isMet(gate)
  const verdict = met === undefined ? 'unknown' : met ? 'met' : 'missed'
  const sign = gate.least !== undefined ? '≥' : '≤'
  const asked = `${sign} ${showNumber(gate.least ?? gate.most)} ${gate.unit}`
  const goal = gate.goal === undefined ? '' : `, goal ${showNumber(gate.goal)}${reachesGoal(gate) ? ' reached' : ''}`
  return `${verdict.padEnd(8)} ${gate.name}: asked ${asked}${goal}; measured ${showSummary(gate.measured)}`
}

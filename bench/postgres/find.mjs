import { findScenario } from '../reads.mjs'

export const scenario = (bench) => findScenario(bench, 'postgres/millrace')

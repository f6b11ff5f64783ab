import { lanesScenario } from '../reads.mjs'

export const scenario = (bench) => lanesScenario(bench, 'postgres/millrace')

import type { Scenario } from '../stage.js'
import { ATTEMPTS } from './attempts.js'
import { COMMANDS } from './commands.js'
import { ENQUEUEING } from './enqueueing.js'
import { FLEET } from './fleet.js'
import { RELATIONS } from './relations.js'

export const SCENARIOS: readonly Scenario[] = [...ENQUEUEING, ...ATTEMPTS, ...COMMANDS, ...RELATIONS, ...FLEET]

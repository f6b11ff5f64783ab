#!/usr/bin/env node
import { printAnswer, printLine } from '../world/process.js'
import { systemWorld } from '../world/world.js'
import { run } from './run.js'

process.exitCode = await run(process.argv.slice(2), { stdout: printAnswer, stderr: printLine, world: systemWorld() })

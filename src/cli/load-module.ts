import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { reason } from '../codec/show.js'
import { misuse } from './choose-store.js'

/** Imports the module that an option of a command names by its path. `advice`: what to give where the option is missing. */
export async function loadModule(
  command: string,
  option: string,
  path: string | undefined,
  advice: string,
): Promise<unknown> {
  if (path === undefined) throw misuse(command, option, `is missing: ${advice}`)
  try {
    return await import(pathToFileURL(resolve(path)).href)
  } catch (error) {
    throw misuse(command, option, `cannot be loaded: ${reason(error)}`)
  }
}

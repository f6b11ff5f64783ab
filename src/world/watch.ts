import { watch } from 'node:fs'
import type { Cancel } from './timers.js'

/**
 * Calls `touched` when the file was written, and `gone` when it was removed or can no longer be watched. Throws the error of the
 * operating system when it cannot be watched at all. It does not keep the process alive.
 */
export type Watch = (path: string, touched: () => void, gone: () => void) => Cancel

export const systemWatch: Watch = (path, touched, gone) => {
  const watcher = watch(path, { persistent: false }, (event) => (event === 'rename' ? gone() : touched()))
  watcher.on('error', gone)
  return () => watcher.close()
}

/** The first frame of a stack that is code of the app: "charge (src/jobs/charge.ts:41)"; null when there is none. */
export function firstAppFrame(stack: string): string | null {
  for (const line of stack.split('\n')) {
    const found = /^\s+at (?:async )?(?:(.+?) \()?((?:file:\/\/)?[^()]+?):(\d+):\d+\)?$/.exec(line)
    if (found === null) continue
    const [, name, file = '', at] = found
    if (file.includes('node_modules') || file.startsWith('node:')) continue
    const place = `${shortPath(file)}:${at}`
    return name === undefined ? place : `${name} (${place})`
  }
  return null
}

/** A path without the folder of the app: what follows the last folder that sources are usually in, else its last two parts. */
function shortPath(file: string): string {
  const path = file.replace(/^file:\/\//, '')
  const root = /\/((?:src|app|lib|dist|jobs|test)\/.*)$/.exec(path)
  return root?.[1] ?? path.split('/').slice(-2).join('/')
}

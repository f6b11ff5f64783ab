/** What the process around us says: its environment and its standard error. */
export function readEnvironment(): { readonly store: string | undefined; readonly production: boolean } {
  const store = process.env['MILLRACE_STORE']
  return { store: store === '' ? undefined : store, production: process.env['NODE_ENV'] === 'production' }
}

/** Whether standard error is a terminal that shows colours; `NO_COLOR` and `TERM=dumb` say that it does not. */
export function showsColours(): boolean {
  return process.stderr.isTTY === true && process.stderr.hasColors()
}

/** Log lines go to standard error: standard output is the app's own. */
export function printLine(line: string): void {
  process.stderr.write(`${line}\n`)
}

/** What a command answers goes to standard output, whole. */
export function printAnswer(text: string): void {
  process.stdout.write(text.endsWith('\n') ? text : `${text}\n`)
}

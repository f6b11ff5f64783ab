/** Reads the environment of the process. */
export function readEnvironment(): { readonly store: string | undefined; readonly production: boolean } {
  const store = process.env['MILLRACE_STORE']
  return { store: store === '' ? undefined : store, production: process.env['NODE_ENV'] === 'production' }
}

/** Whether standard error is a terminal with colours; `NO_COLOR` and `TERM=dumb` turn them off. */
export function showsColours(): boolean {
  return process.stderr.isTTY === true && process.stderr.hasColors()
}

/** Writes a log line to standard error: standard output belongs to the app. */
export function printLine(line: string): void {
  process.stderr.write(`${line}\n`)
}

/** Writes the answer of a command to standard output. */
export function printAnswer(text: string): void {
  process.stdout.write(text.endsWith('\n') ? text : `${text}\n`)
}

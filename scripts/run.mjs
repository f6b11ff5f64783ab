import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The root of the repository: every path of these scripts is relative to it, never to the working directory. */
export const root = fileURLToPath(new URL('..', import.meta.url))

/**
 * The program behind a dev dependency's `bin`. It is started with node, so that no shell and no shim is in between, and
 * found by its path, since not every package exports its package.json.
 */
export function tool(packageName, bin = packageName) {
  const folder = join(root, 'node_modules', packageName)
  const entry = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')).bin
  return join(folder, typeof entry === 'string' ? entry : entry[bin])
}

/**
 * Runs one program to its end. With `show` the output is written directly to the terminal. A run past `timeoutMs` is ended and
 * counts as a failure. `output` has all output, `errors` only stderr. An `env` value of undefined removes the variable.
 * @param {string} command
 * @param {string[]} args
 * @param {{ cwd?: string, env?: Record<string, string | undefined>, show?: boolean, timeoutMs?: number }} [options]
 * @returns {Promise<{ code: number, output: string, errors: string, seconds: number }>}
 */
export function run(command, args, { cwd = root, env = {}, show = false, timeoutMs = 600_000 } = {}) {
  const start = performance.now()
  return new Promise((resolve) => {
    const child = spawn(command, args, {
      cwd,
      env: { ...process.env, ...env },
      stdio: ['ignore', show ? 'inherit' : 'pipe', show ? 'inherit' : 'pipe'],
      // npm is a .cmd on Windows, which only a shell can start.
      shell: process.platform === 'win32' && command === 'npm',
    })
    let output = ''
    let errors = ''
    const end = (code, more = '') => {
      clearTimeout(timer)
      resolve({ code, output: output + more, errors, seconds: (performance.now() - start) / 1000 })
    }
    const timer = setTimeout(() => {
      child.kill('SIGKILL')
      end(1, `\nended after ${timeoutMs / 1000} s\n`)
    }, timeoutMs)
    child.stdout?.setEncoding('utf8').on('data', (text) => (output += text))
    child.stderr?.setEncoding('utf8').on('data', (text) => {
      output += text
      errors += text
    })
    child.on('error', (error) => end(1, `${error.message}\n`))
    child.on('close', (code, signal) => end(code ?? 1, signal ? `\nended by ${signal}\n` : ''))
  })
}

/**
 * Runs a JavaScript program with this Node.
 * @param {string[]} args
 * @param {Parameters<typeof run>[2]} [options]
 */
export function runNode(args, options) {
  return run(process.execPath, args, options)
}

/** `✓ name 1.2 s`, and below it the output of a failed check. */
export function tell({ name, code, output = '', seconds }) {
  console.log(`${code === 0 ? '✓' : '✗'} ${name} ${seconds.toFixed(1)} s`)
  if (code !== 0 && output.trim() !== '') console.log(output.trimEnd().replace(/^/gm, '    '))
}

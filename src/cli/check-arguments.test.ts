import { defineCommand } from 'citty'
import { expect, test } from 'vitest'
import { checkArguments } from './check-arguments.js'

const command = defineCommand({ args: { 'read-only': { type: 'boolean' }, store: { type: 'string' } } })
const check = (...words: string[]): void => checkArguments('dashboard', command as never, words)

test('an option of two words is accepted, and a wrong one is refused with the nearest', () => {
  expect(() => check('--read-only', '--store', 'app.db')).not.toThrow()
  expect(() => check('--read-onyl')).toThrow('did you mean "--read-only"?')
  expect(() => check('--readonly')).toThrow('did you mean "--read-only"?')
  expect(() => check('--store')).toThrow('needs a value')
})

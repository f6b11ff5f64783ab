import { expect, test } from 'vitest'
import { GO, KEY_HELP, press } from './keys.js'

const idle = { isGoing: false }
const plain = { ctrl: false, alt: false, shift: false, inField: false }

test('g and a letter go to a page, and another letter ends the wait', () => {
  const { state, action } = press(idle, { ...plain, key: 'g' }, true)
  expect(action).toBeUndefined()
  expect(press(state, { ...plain, key: 'q' }, true).action).toBe('page:#/queues')
  expect(press(state, { ...plain, key: 'z' }, true)).toEqual({ state: idle, action: undefined })
})

test('no single key acts in a field, with a modifier, or when they are switched off', () => {
  expect(press(idle, { ...plain, key: 'r', inField: true }, true).action).toBeUndefined()
  expect(press(idle, { ...plain, key: 'r', ctrl: true }, true).action).toBeUndefined()
  expect(press(idle, { ...plain, key: 'r', alt: true }, true).action).toBeUndefined()
  expect(press(idle, { ...plain, key: 'r' }, false).action).toBeUndefined()
  expect(press(idle, { ...plain, key: 'r' }, true).action).toBe('retry')
})

test('Escape and Ctrl K act everywhere', () => {
  expect(press(idle, { ...plain, key: 'Escape', inField: true }, false).action).toBe('close')
  expect(press(idle, { ...plain, key: 'k', ctrl: true, inField: true }, false).action).toBe('jump')
})

test('the help names every page that a key goes to', () => {
  const shown = KEY_HELP.map(([keys]) => keys)
  expect(
    Object.keys(GO)
      .map((key) => `g ${key}`)
      .filter((keys) => !shown.includes(keys)),
  ).toEqual([])
})

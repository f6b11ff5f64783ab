import { expect, test } from 'vitest'
import { UncaughtErrors } from './uncaught.js'

function setUp() {
  const calls: string[] = []
  let listener: ((error: unknown) => void) | undefined
  let listeners = 0
  const later: (() => void)[] = []
  const errors = new UncaughtErrors({
    on: (given) => void ([listener, listeners] = [given, listeners + 1]),
    off: () => void ([listener, listeners] = [undefined, listeners - 1]),
    listenerCount: () => listeners,
    later: (callback) => void later.push(callback),
    rethrow: (error) => void calls.push(`rethrow ${String(error)}`),
  })
  const owner = (name: string, owns: unknown) => ({
    claim: (error: unknown) => (error === owns ? () => void calls.push(`${name} handles ${String(error)}`) : undefined),
    unclaimed: (error: unknown, isShared: boolean) => void calls.push(`${name} reports ${String(error)} ${isShared}`),
  })
  return {
    errors,
    calls,
    owner,
    later,
    isListening: () => listener !== undefined,
    raise: (error: unknown) => listener?.(error),
    addAppListener: () => void (listeners += 1),
  }
}

test('an error goes to the owner that claims it', () => {
  const { errors, calls, owner, raise } = setUp()
  errors.add(owner('a', 'x'))
  errors.add(owner('b', 'y'))
  raise('y')
  expect(calls).toEqual(['b handles y'])
})

test('where the app listens too, the owner acts after the listeners of the app', () => {
  const { errors, calls, owner, raise, addAppListener, later } = setUp()
  addAppListener()
  errors.add(owner('a', 'x'))
  raise('x')
  expect(calls).toEqual([])
  for (const each of later) each()
  expect(calls).toEqual(['a handles x'])
})

test('an error without an owner is reported once, and thrown again where no listener of the app decides', () => {
  const { errors, calls, owner, raise, isListening } = setUp()
  errors.add(owner('a', 'x'))
  errors.add(owner('b', 'y'))
  raise('z')
  expect([calls, isListening()]).toEqual([['a reports z false', 'rethrow z'], false])
})

test('an error without an owner is left to the listener of the app', () => {
  const { errors, calls, owner, raise, addAppListener, isListening } = setUp()
  addAppListener()
  errors.add(owner('a', 'x'))
  raise('z')
  expect([calls, isListening()]).toEqual([['a reports z true'], true])
})

test('it listens while it has an owner', () => {
  const { errors, owner, isListening } = setUp()
  const [first, second] = [errors.add(owner('a', 'x')), errors.add(owner('b', 'y'))]
  first()
  first()
  expect(isListening()).toBe(true)
  second()
  expect(isListening()).toBe(false)
})

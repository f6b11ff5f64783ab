import { beforeEach, describe, expect, test, vi } from 'vitest'
import { runThroughHook } from './run-hooks.js'

type Next = () => unknown
const reported: unknown[] = []
beforeEach(() => void reported.splice(0))
const through = (hook: (next: Next) => unknown, inner: () => unknown, sync = false): unknown =>
  runThroughHook('start', hook as never, inner, { sync, failed: (error) => reported.push(error) })
const boom = (): never => {
  throw new Error('boom')
}
const later = <T>(value: T): Promise<T> => new Promise((resolve) => setImmediate(() => resolve(value)))
const failLater = (message: string): Promise<never> =>
  new Promise((_, reject) => setImmediate(() => reject(new Error(message))))

describe('the result', () => {
  test('is that of the inner function, synchronous or not, whatever the hook returns', async () => {
    expect(
      through(
        (next) => next(),
        () => 5,
      ),
    ).toBe(5)
    expect(
      through(
        (next) => void next(),
        () => 5,
      ),
    ).toBe(5)
    expect(
      await through(
        async (next) => `changed ${String(await next())}`,
        () => later(5),
      ),
    ).toBe(5)
    expect(
      await through(
        (next) => void next(),
        () => later(5),
      ),
    ).toBe(5)
    expect(
      await through(
        async (next) => void next(),
        () => later(5),
      ),
    ).toBe(5)
  })

  test('is the same promise object when the hook returns what next returned', () => {
    const promise = Promise.resolve(5)
    expect(
      through(
        (next) => next(),
        () => promise,
      ),
    ).toBe(promise)
  })

  test('is the failure of the inner function, also when the hook catches it', async () => {
    const swallow = (next: Next): void => {
      try {
        next()
      } catch {
        // A hook that only logs may do this.
      }
    }
    expect(() => through(swallow, boom)).toThrow('boom')
    const swallowLater = async (next: Next): Promise<void> => {
      await Promise.resolve(next()).catch(() => undefined)
    }
    await expect(through(swallowLater, () => failLater('late boom'))).rejects.toThrow('late boom')
  })

  test('is the error of the hook, before next, after next, and instead of an inner failure', async () => {
    const inside = vi.fn(() => 5)
    expect(() => through(() => boom(), inside)).toThrow('boom')
    expect(inside).not.toHaveBeenCalled()
    await expect(
      through(
        async (next) => (await next(), boom()),
        () => later(5),
      ),
    ).rejects.toThrow('boom')
    const wrap = async (next: Next): Promise<void> => {
      await Promise.resolve(next()).catch((cause: unknown) => {
        throw new Error('wrapped', { cause })
      })
    }
    await expect(through(wrap, () => failLater('first'))).rejects.toThrow('wrapped')
  })
})

test('a hook that throws after next ends only when the inner function has ended', async () => {
  const order: string[] = []
  const inside = async (): Promise<void> => {
    await later(0)
    order.push('inside ended')
  }
  const giveUp = (next: Next): never => {
    void next()
    return boom()
  }
  await expect(through(giveUp, inside)).rejects.toThrow('boom')
  expect(order).toEqual(['inside ended'])
})

describe('a hook', () => {
  test('that never calls next is refused, and the inner function is not called', async () => {
    const inside = vi.fn()
    expect(() => through(() => undefined, inside)).toThrow('hooks.start ended without calling next()')
    await expect(through(async () => undefined, inside)).rejects.toThrow(/ended without calling next/)
    expect(inside).not.toHaveBeenCalled()
  })

  test('that calls next twice gets the first result again, and the mistake is reported', async () => {
    const inside = vi.fn(() => later(5))
    const given: unknown[] = []
    const twice = (next: Next): void => void given.push(next(), next())
    expect(await through(twice, inside)).toBe(5)
    expect(given[0]).toBe(given[1])
    expect(inside).toHaveBeenCalledTimes(1)
    expect(reported.map(String)).toEqual([expect.stringContaining('hooks.start called next() twice')])
  })

  test('that calls next again after a failure, or after its end, does not call the inner function again', async () => {
    const inside = vi.fn(() => failLater('inside'))
    let late: Next = () => undefined
    const again = async (next: Next): Promise<void> => {
      late = next
      try {
        await next()
      } catch {
        await next()
      }
    }
    await expect(through(again, inside)).rejects.toThrow('inside')
    await expect(late()).rejects.toThrow('inside')
    expect([inside.mock.calls.length, reported.length]).toEqual([1, 2])
  })

  test('gets every inner failure as a rejected promise', async () => {
    const seen: string[] = []
    const watch = (next: Next): unknown => (next() as Promise<unknown>).finally(() => seen.push('ended'))
    await expect(through(watch, boom)).rejects.toThrow('boom')
    expect(() => through(watch, boom, true)).toThrow('boom')
    await later(0)
    expect([seen, reported]).toEqual([['ended', 'ended'], []])
  })

  test('that calls next after its end gets a rejected promise, which is never unhandled', async () => {
    const inside = vi.fn()
    let late: Next = () => undefined
    expect(() => through((next) => void (late = next), inside)).toThrow(/without calling next/)
    // Not awaited: an unhandled rejection would fail this test run.
    void late()
    await expect(late()).rejects.toThrow('called next() after it had ended')
    expect(inside).not.toHaveBeenCalled()
  })

  test('that awaits a failure late does not cause an unhandled rejection', async () => {
    const slow = async (next: Next): Promise<void> => {
      const running = next()
      await later(0)
      await later(0)
      await running
    }
    await expect(through(slow, () => Promise.reject(new Error('early')))).rejects.toThrow('early')
  })
})

describe('with sync', () => {
  test('a hook may return what next returned, or nothing', () => {
    const promise = Promise.resolve(5)
    expect(
      through(
        (next) => next(),
        () => promise,
        true,
      ),
    ).toBe(promise)
    expect(
      through(
        (next) => void next(),
        () => promise,
        true,
      ),
    ).toBe(promise)
  })

  test('the promise of the hook is not awaited, and its failure is reported', async () => {
    const promise = Promise.resolve(5)
    const asynchronous = async (next: Next): Promise<void> => {
      await next()
      boom()
    }
    expect(through(asynchronous, () => promise, true)).toBe(promise)
    expect(
      through(
        (next) => (next() as Promise<unknown>).finally(() => undefined),
        () => promise,
        true,
      ),
    ).toBe(promise)
    await later(0)
    expect(reported.map(String)).toEqual(['Error: boom'])
  })

  test('an inner failure that also rejects the promise of the hook is reported by the result alone', async () => {
    const inside = (): Promise<never> => failLater('inside')
    const waiting = async (next: Next): Promise<unknown> => next()
    await expect(through(waiting, inside, true)).rejects.toThrow('inside')
    await later(0)
    expect(reported).toEqual([])
  })

  test('a hook that awaits before it calls next is refused at once, and its later failure is ignored', async () => {
    const inside = vi.fn()
    const asking = async (next: Next): Promise<void> => {
      await later(0)
      await next()
    }
    expect(() => through(asking, inside, true)).toThrow(/awaited before it called next\(\), and with tx/)
    await later(0)
    await later(0)
    expect([inside.mock.calls.length, reported]).toEqual([0, []])
  })

  test('an error that the hook throws after next is thrown', () => {
    const giveUp = (next: Next): never => {
      void next()
      return boom()
    }
    expect(() => through(giveUp, () => Promise.resolve(5), true)).toThrow('boom')
  })
})

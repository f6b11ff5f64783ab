import { beforeEach, describe, expect, test, vi } from 'vitest'
import { runThroughHook } from './run-hooks.js'

type Next = () => unknown
const told: unknown[] = []
beforeEach(() => void told.splice(0))
const through = (hook: (next: Next) => unknown, inner: () => unknown, sync = false): unknown =>
  runThroughHook('start', hook as never, inner, { sync, failed: (error) => told.push(error) })
const boom = (): never => {
  throw new Error('boom')
}
const later = <T>(value: T): Promise<T> => new Promise((resolve) => setImmediate(() => resolve(value)))
const failLater = (message: string): Promise<never> =>
  new Promise((_, reject) => setImmediate(() => reject(new Error(message))))

describe('the result', () => {
  test('is what was inside, synchronous or not, whatever the hook returns', async () => {
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

  test('is the very promise that was inside when the hook passes it on', () => {
    const promise = Promise.resolve(5)
    expect(
      through(
        (next) => next(),
        () => promise,
      ),
    ).toBe(promise)
  })

  test('is the failure inside, also when the hook catches it', async () => {
    const swallow = (next: Next): void => {
      try {
        next()
      } catch {
        // As a hook that only logs might.
      }
    }
    expect(() => through(swallow, boom)).toThrow('boom')
    const swallowLater = async (next: Next): Promise<void> => {
      await Promise.resolve(next()).catch(() => undefined)
    }
    await expect(through(swallowLater, () => failLater('late boom'))).rejects.toThrow('late boom')
  })

  test('is what the hook throws, before, after and instead of a failure inside', async () => {
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

test('a hook that gives up is not over before what is inside', async () => {
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
  test('that never calls next is refused, and what was inside is not called', async () => {
    const inside = vi.fn()
    expect(() => through(() => undefined, inside)).toThrow('hooks.start ended without calling next()')
    await expect(through(async () => undefined, inside)).rejects.toThrow(/ended without calling next/)
    expect(inside).not.toHaveBeenCalled()
  })

  test('that calls next twice is given the first one’s result, and it is told', async () => {
    const inside = vi.fn(() => later(5))
    const given: unknown[] = []
    const twice = (next: Next): void => void given.push(next(), next())
    expect(await through(twice, inside)).toBe(5)
    expect(given[0]).toBe(given[1])
    expect(inside).toHaveBeenCalledTimes(1)
    expect(told.map(String)).toEqual([expect.stringContaining('hooks.start called next() twice')])
  })

  test('that calls next again when it failed, or when it is over, does nothing anew', async () => {
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
    expect([inside.mock.calls.length, told.length]).toEqual([1, 2])
  })

  test('meets every failure of what is inside by the promise', async () => {
    const met: string[] = []
    const watch = (next: Next): unknown => (next() as Promise<unknown>).finally(() => met.push('ended'))
    await expect(through(watch, boom)).rejects.toThrow('boom')
    expect(() => through(watch, boom, true)).toThrow('boom')
    await later(0)
    expect([met, told]).toEqual([['ended', 'ended'], []])
  })

  test('that calls next when it is over does nothing, and harms nobody who does not look', async () => {
    const inside = vi.fn()
    let late: Next = () => undefined
    expect(() => through((next) => void (late = next), inside)).toThrow(/without calling next/)
    // Not looked at: an unhandled rejection would fail this run.
    void late()
    await expect(late()).rejects.toThrow('called next() after it had ended')
    expect(inside).not.toHaveBeenCalled()
  })

  test('that looks at a failure late does not make it an unhandled one', async () => {
    const slow = async (next: Next): Promise<void> => {
      const running = next()
      await later(0)
      await later(0)
      await running
    }
    await expect(through(slow, () => Promise.reject(new Error('early')))).rejects.toThrow('early')
  })
})

describe('where everything must happen within the call', () => {
  test('a hook may pass on what next gave, or return nothing', () => {
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

  test('what the hook still does is not waited for, and its failure is told', async () => {
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
    expect(told.map(String)).toEqual(['Error: boom'])
  })

  test('a failure inside that passes through what the hook still does is told by the result alone', async () => {
    const inside = (): Promise<never> => failLater('inside')
    const waiting = async (next: Next): Promise<unknown> => next()
    await expect(through(waiting, inside, true)).rejects.toThrow('inside')
    await later(0)
    expect(told).toEqual([])
  })

  test('a hook that awaits before it calls next is refused at once, and its failure is nobody’s', async () => {
    const inside = vi.fn()
    const asking = async (next: Next): Promise<void> => {
      await later(0)
      await next()
    }
    expect(() => through(asking, inside, true)).toThrow(/awaited before it called next\(\), and with tx/)
    await later(0)
    await later(0)
    expect([inside.mock.calls.length, told]).toEqual([0, []])
  })

  test('what the hook throws after next is thrown', () => {
    const giveUp = (next: Next): never => {
      void next()
      return boom()
    }
    expect(() => through(giveUp, () => Promise.resolve(5), true)).toThrow('boom')
  })
})
